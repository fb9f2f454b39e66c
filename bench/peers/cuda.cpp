/*
 * cuda.cpp - times the conversions of CUDA's cuda_fp8.h, cuda_fp6.h and
 * cuda_fp4.h on the host
 *
 * SPDX-License-Identifier: MIT
 *
 * Run by fpconv-bench --peers as `fpconv-peer-cuda N...`.  Prints a line a
 * measurement, "peer src dst n ns".  The headers have host versions of their
 * functions, one value a call, in loops here; no CUDA library is needed.
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <algorithm>

#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

namespace
{

template <class Run> double median_ns(std::size_t n, Run run)
{
    using clock = std::chrono::steady_clock;
    std::vector<double> samples;
    run();
    for (int i = 0; i < 5; i++) {
        const auto start = clock::now();
        run();
        samples.push_back(std::chrono::duration<double, std::nano>(clock::now() - start).count());
    }
    std::nth_element(samples.begin(), samples.begin() + 2, samples.end());
    return samples[2] / static_cast<double>(n);
}

template <class Wide, class Encode>
void measure(const char *wide, const char *narrow, std::size_t n, Encode encode)
{
    std::mt19937_64 generator(1);
    std::normal_distribution<double> normal;
    std::vector<Wide> values(n);
    std::vector<std::uint8_t> codes(n);
    for (auto &value : values)
        value = static_cast<Wide>(normal(generator));
    const double ns = median_ns(n, [&] {
        for (std::size_t i = 0; i < n; i++)
            codes[i] = encode(values[i]);
        __asm__ volatile("" : : "r"(codes.data()) : "memory");
    });
    std::printf("cuda %s %s %zu %g\n", wide, narrow, n, ns);
    std::fflush(stdout);
}

void measure_all(std::size_t n)
{
    const auto fp8 = [](auto kind) {
        return [kind](auto x) {
            if constexpr (sizeof(x) == sizeof(float))
                return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kind);
            else
                return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind);
        };
    };
    const auto fp6 = [](auto kind) {
        return [kind](auto x) {
            if constexpr (sizeof(x) == sizeof(float))
                return __nv_cvt_float_to_fp6(x, kind, cudaRoundNearest);
            else
                return __nv_cvt_double_to_fp6(x, kind, cudaRoundNearest);
        };
    };
    const auto fp4 = [](auto x) {
        if constexpr (sizeof(x) == sizeof(float))
            return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
        else
            return __nv_cvt_double_to_fp4(x, __NV_E2M1, cudaRoundNearest);
    };
    measure<float>("f32", "e5m2", n, fp8(__NV_E5M2));
    measure<float>("f32", "e4m3", n, fp8(__NV_E4M3));
    measure<float>("f32", "e3m2", n, fp6(__NV_E3M2));
    measure<float>("f32", "e2m3", n, fp6(__NV_E2M3));
    measure<float>("f32", "e2m1", n, fp4);
    measure<double>("f64", "e5m2", n, fp8(__NV_E5M2));
    measure<double>("f64", "e4m3", n, fp8(__NV_E4M3));
    measure<double>("f64", "e3m2", n, fp6(__NV_E3M2));
    measure<double>("f64", "e2m3", n, fp6(__NV_E2M3));
    measure<double>("f64", "e2m1", n, fp4);
}

} // namespace

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        measure_all(std::strtoull(argv[i], nullptr, 10));
}
