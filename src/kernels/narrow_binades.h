/*
 * narrow_binades.h - rounding into 8 bits and fewer by a table of binades: the algorithm
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow_byte.h for an instruction set that looks 16-bit lanes up in a table of as
 * many as a vector has, at least 32, and shifts each by a count of its own.  It takes 8
 * operations where round_by_product takes 10, of which one port has to do fewer: with
 * AVX-512 f32 to e4m3 takes 0.12 ns an element instead of 0.15.
 *
 *   code = (doubled - base + 2^(shift - 1)) / 2^shift,
 *
 * where doubled - base has the exponent field of the code where that is normal, and where
 * it is subnormal is the significand, with its leading one.  Rounded like this, ties go away
 * from zero.  If they are to go to even, 1 is taken off, and put back where the quotient
 * is going to be odd: by setting the last bit where the bit of `doubled` that will be the
 * quotient's last is set.  That bit is part of the fraction but in the two lowest binades:
 *
 * - from the smallest subnormal number on, the quotient without rounding is 1, which is odd,
 *   so that ties go away from zero: nothing is taken off, and the last bit does not count;
 * - from half of that on, it is 0, which is even.  The last bit must stay as it is, for it
 *   tells the tie, at the lower end, from what is above: so the shift is one that meets a
 *   clear bit of the exponent field, with an addend that makes it 0 for the tie, else 1.
 *
 * In binades that lose the carry out of the significand, half of the last place is added
 * by itself, and the exponent field of doubled - base stays.
 */

struct binades {
    vec base, half, shift; /* the base with half of the last place in it where `half` is 0 */
};

/* `first` is the exponent field of the binade before those; all below it become 0. */
LANES struct binades list_binades(fpconv_format lane, fpconv_format dst, int first,
                                  fpconv_policy policy)
{
    const bool ties_away = fp_policy_is_hdf5(policy);
    const struct fp_format *l = &fp_formats[lane], *d = &fp_formats[dst];
    const uint16_t fraction_bits = (uint16_t)(l->fraction_bits + 1); /* doubled */
    const uint16_t subnormals = (uint16_t)(1 - d->bias + l->bias - first);
    const vec_u16 index = (vec_u16)u16_indices();
    const vec_u16 places_below = (subnormals - index) & (vec_u16)(index < subnormals);
    const vec_u16 exponent = (uint16_t)(first + subnormals) - places_below;
    const vec_u16 base = (exponent - 1) << fraction_bits;
    const vec_u16 shift = places_below + (uint16_t)(fraction_bits - d->fraction_bits);
    const vec_u16 less = (vec_u16)(shift < fraction_bits) & (uint16_t)!ties_away;
    const vec_u16 half = (vec_u16)u16_set(1) << (shift - 1);

    uint16_t last_shift = fraction_bits;
    for (int bits = first + 1; bits & !ties_away; bits >>= 1)
        last_shift++;
    const uint16_t last_half = (uint16_t)((1 << last_shift) - (1 << fraction_bits) - !ties_away);
    const vec_u16 is_last = (vec_u16)(index == 1), is_beyond = (vec_u16)(index == 0);
    const bool always = policy == FPCONV_HDF5_CARRY_LOST;
    const uint16_t end = always ? LANES_16 : fp_policy_loses_carries(policy) ? subnormals : 0;
    const vec_u16 loses_carry = (vec_u16)(index > 1) & (vec_u16)(index < end);
    const vec_u16 half_in_base = half & ~loses_carry;
    return (struct binades){
        vec_merge((vec)is_last, (vec)(base - last_half), (vec)(base - half_in_base + less)),
        (vec)(half & loses_carry),
        vec_merge((vec)is_last, u16_set(last_shift), (vec)(shift | (is_beyond & 16))),
    };
}

LANES vec round_by_binade(vec doubled, fpconv_format lane, fpconv_format dst, fpconv_policy policy)
{
    const struct fp_format *l = &fp_formats[lane], *d = &fp_formats[dst];
    const int first = -d->bias + l->bias - d->fraction_bits - 1;
    const struct binades binades = list_binades(lane, dst, first, policy);
    const vec exponent = u16_shift_right(doubled, l->fraction_bits + 1);
    vec index = u16_sub_saturate(exponent, u16_set((uint16_t)first));
    if (d->fraction_bits + (1 << d->exponent_bits) >= LANES_16) /* normal ones are alike */
        index = u16_min(index, u16_set(LANES_16 - 1));
    const vec shift = u16_lookup(binades.shift, index);
    if (!fp_policy_is_hdf5(policy))
        doubled = vec_or_and(doubled, u16_shift_right_by(doubled, shift), u16_set(1));
    vec sum = u16_sub(doubled, u16_lookup(binades.base, index));
    if (fp_policy_loses_carries(policy)) {
        const vec fraction = u16_set((uint16_t)((2 << l->fraction_bits) - 1));
        sum = vec_merge(fraction, u16_add(sum, u16_lookup(binades.half, index)), sum);
    }
    return u16_shift_right_by(sum, shift);
}
