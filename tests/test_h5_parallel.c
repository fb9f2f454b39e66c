/*
 * test_h5_parallel.c - fpconv_h5_write and fpconv_h5_read under MPI
 *
 * SPDX-License-Identifier: MIT
 *
 * Run by mpirun.  The processes write one dataset collectively, in parts of
 * unequal size, and read it back in other parts; HDF5 says whether each transfer
 * was collective.  Prints its results in the TAP format.  A failed check ends
 * all processes, as the others would wait for the one that failed.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fpconv/fpconv_h5.h"

enum { ROWS = 1200, COLUMNS = 1000, CHUNK_ROWS = 64, CHUNK_COLUMNS = 96 };

static int rank, processes;
static unsigned checked;
static hid_t file, collective;

static void check(bool holds, const char *what, unsigned line)
{
    if (!holds) {
        fprintf(stderr, "not ok - process %d, line %u: %s\n", rank, line, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
#define CHECK(condition) check(condition, #condition, __LINE__)

static void passed(const char *what, fpconv_format format, bool chunked)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("ok %u - %s, %s, %s, %d processes\n", ++checked, what, fpconv_format_name(format),
               chunked ? "chunked" : "contiguous", processes);
}

/* Any value of the dataset, from its place alone: magnitudes 2^-10 to 2^6. */
static float value_at(hsize_t row, hsize_t column)
{
    const uint32_t mix = (uint32_t)(row * COLUMNS + column) * UINT32_C(2654435761);
    const float significand = 1.0f + (float)(mix >> 9) * 0x1p-23f;
    return ldexpf(mix & 1 ? -significand : significand, (int)(mix >> 4 & 15) - 10);
}

static float stored_value_at(fpconv_format format, hsize_t row, hsize_t column)
{
    const uint32_t code = fpconv_encode(format, (double)value_at(row, column), FPCONV_HDF5);
    return (float)fpconv_decode(format, code, FPCONV_HDF5);
}

/* -------------------------------------------------------------------------- */
/* Parts                                                                      */
/* -------------------------------------------------------------------------- */

/* A process's part of the dataset: rows [row, row + rows), columns likewise. */
struct part {
    hsize_t row, column, rows, columns;
};

/* The first process has half of the rows, the last of more than two has none. */
static struct part uneven_rows(void)
{
    const int sharing = processes > 2 ? processes - 1 : processes;
    const hsize_t half = ROWS / 2, each = sharing > 1 ? half / (hsize_t)(sharing - 1) : half;
    if (rank == 0)
        return (struct part){0, 0, sharing > 1 ? half : ROWS, COLUMNS};
    if (rank >= sharing)
        return (struct part){0, 0, 0, 0};
    return (struct part){half + (hsize_t)(rank - 1) * each, 0, each, COLUMNS};
}

static struct part even_columns(void)
{
    const hsize_t each = COLUMNS / (hsize_t)processes;
    return (struct part){0, (hsize_t)rank * each, ROWS, each};
}

static hid_t select_part(struct part part)
{
    const hsize_t size[2] = {ROWS, COLUMNS}, start[2] = {part.row, part.column},
                  count[2] = {part.rows, part.columns};
    const hid_t space = H5Screate_simple(2, size, NULL);
    if (part.rows == 0)
        CHECK(H5Sselect_none(space) >= 0);
    else
        CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    return space;
}

/* In memory a part is packed. */
static hid_t memory_of(struct part part)
{
    const hsize_t count = part.rows * part.columns, one = 1;
    const hid_t space = H5Screate_simple(1, count ? &count : &one, NULL);
    if (count == 0)
        CHECK(H5Sselect_none(space) >= 0);
    return space;
}

/* -------------------------------------------------------------------------- */
/* Checks                                                                     */
/* -------------------------------------------------------------------------- */

static uint32_t cause(void)
{
    uint32_t local = UINT32_MAX, global = UINT32_MAX;
    CHECK(H5Pget_mpio_no_collective_cause(collective, &local, &global) >= 0);
    return local | global;
}

static hid_t make_dataset(fpconv_format format, bool chunked, const char *prefix)
{
    char name[64];
    snprintf(name, sizeof(name), "%s %s %s", prefix, fpconv_format_name(format),
             chunked ? "chunked" : "contiguous");
    const hsize_t size[2] = {ROWS, COLUMNS}, chunk[2] = {CHUNK_ROWS, CHUNK_COLUMNS};
    const hid_t space = H5Screate_simple(2, size, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    if (chunked)
        CHECK(H5Pset_chunk(list, 2, chunk) >= 0);
    const hid_t dataset =
        H5Dcreate2(file, name, fpconv_h5_type(format), space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(dataset >= 0);
    H5Pclose(list);
    H5Sclose(space);
    return dataset;
}

static float *make_values(struct part part)
{
    float *values = malloc((part.rows * part.columns + 1) * sizeof(*values));
    CHECK(values != NULL);
    for (hsize_t i = 0; i < part.rows * part.columns; i++)
        values[i] = value_at(part.row + i / part.columns, part.column + i % part.columns);
    return values;
}

static void write_part(hid_t dataset, struct part part)
{
    const hid_t mem = memory_of(part), space = select_part(part);
    float *values = make_values(part);
    CHECK(fpconv_h5_write(dataset, FPCONV_F32, mem, space, collective, values) >= 0);
    CHECK(cause() == H5D_MPIO_COLLECTIVE);
    free(values);
    H5Sclose(space);
    H5Sclose(mem);
}

static void read_part(hid_t dataset, fpconv_format format, struct part part)
{
    const hid_t mem = memory_of(part), space = select_part(part);
    float *values = make_values(part);
    CHECK(fpconv_h5_read(dataset, FPCONV_F32, mem, space, collective, values) >= 0);
    CHECK(cause() == H5D_MPIO_COLLECTIVE);
    for (hsize_t i = 0; i < part.rows * part.columns; i++)
        CHECK(values[i] ==
              stored_value_at(format, part.row + i / part.columns, part.column + i % part.columns));
    free(values);
    H5Sclose(space);
    H5Sclose(mem);
}

/* What makes all this necessary; and the proof that cause() can tell. */
static void check_that_h5dwrite_drops_out(fpconv_format format, bool chunked)
{
    const struct part part = even_columns();
    const hid_t dataset = make_dataset(format, chunked, "by H5Dwrite");
    const hid_t mem = memory_of(part), space = select_part(part);
    float *values = make_values(part);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_FLOAT, mem, space, collective, values) >= 0);
    CHECK(cause() & H5D_MPIO_DATATYPE_CONVERSION);
    free(values);
    H5Sclose(space);
    H5Sclose(mem);
    H5Dclose(dataset);
    passed("H5Dwrite is not collective", format, chunked);
}

static void check_dataset(fpconv_format format, bool chunked)
{
    const hid_t dataset = make_dataset(format, chunked, "by fpconv_h5_write");
    write_part(dataset, uneven_rows());
    passed("write in uneven rows", format, chunked);
    read_part(dataset, format, even_columns());
    passed("read in columns", format, chunked);
    read_part(dataset, format, (struct part){0, 0, ROWS, COLUMNS});
    passed("read all of it everywhere", format, chunked);
    write_part(dataset, even_columns());
    read_part(dataset, format, uneven_rows());
    passed("write in columns, read in uneven rows", format, chunked);
    H5Dclose(dataset);
}

/* One process with a bad argument: an error everywhere, and nobody waits. */
static void check_common_failure(fpconv_format format)
{
    const struct part part = even_columns();
    const hid_t dataset = make_dataset(format, false, "failure");
    const hid_t mem = memory_of(part), space = select_part(part);
    float *values = make_values(part);
    herr_t done;
    H5E_BEGIN_TRY
    {
        done = fpconv_h5_write(dataset, FPCONV_F32, mem, space, collective,
                               rank == processes - 1 ? NULL : values);
    }
    H5E_END_TRY
    CHECK(done < 0);
    free(values);
    H5Sclose(space);
    H5Sclose(mem);
    H5Dclose(dataset);
    passed("one process that cannot stops all", format, false);
}

int main(int argc, char **argv)
{
    static const fpconv_format formats[] = {FPCONV_BF16, FPCONV_E4M3};
    enum { CHECKS = 2 * 2 * 5 + 1 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (rank == 0)
        printf("1..%d\n", CHECKS);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
    char name[64];
    snprintf(name, sizeof(name), "test_h5_parallel_%d.h5", processes);
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    CHECK(file >= 0);
    collective = H5Pcreate(H5P_DATASET_XFER);
    CHECK(H5Pset_dxpl_mpio(collective, H5FD_MPIO_COLLECTIVE) >= 0);
    for (int i = 0; i < 2; i++)
        for (int chunked = 0; chunked < 2; chunked++) {
            check_that_h5dwrite_drops_out(formats[i], chunked);
            check_dataset(formats[i], chunked);
        }
    check_common_failure(FPCONV_BF16);
    H5Pclose(collective);
    H5Pclose(access);
    H5Fclose(file);
    if (rank == 0)
        remove(name);
    MPI_Finalize();
    return 0;
}
