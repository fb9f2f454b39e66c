/*
 * register.c - which pairs are taken over, and under which rule
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

/* -------------------------------------------------------------------------- */
/* Pairs                                                                      */
/* -------------------------------------------------------------------------- */

/* Does the library convert this pair through us at this moment?  (Somebody may
 * have registered after us.) */
static bool is_ours(const struct h5_pair *pair)
{
    if (pair->registered_in != fp_h5_session())
        return false;
    H5T_cdata_t *cdata;
    H5T_conv_t function = NULL;
    H5E_BEGIN_TRY
    {
        function = H5Tfind(fp_h5_side_type(pair->src), fp_h5_side_type(pair->dst), &cdata);
    }
    H5E_END_TRY
    return function == fp_h5_convert;
}

/*
 * Puts our function into the library's table of paths.  Twice, because arrays
 * keep a pointer to the path of their elements (HDF5 1.14 and later), which the
 * first registration replaces and frees: the library hands the memory out again
 * to the second, so that the pointer is that of the pair's path again.
 */
static bool take(struct h5_pair *pair)
{
    char name[32];
    snprintf(name, sizeof(name), "fpconv:%s%s-%s%s", fpconv_format_name(pair->src->format),
             fp_h5_order_name(pair->src->order), fpconv_format_name(pair->dst->format),
             fp_h5_order_name(pair->dst->order));
    const hid_t src = fp_h5_side_type(pair->src), dst = fp_h5_side_type(pair->dst);
    const bool taken = H5Tregister(H5T_PERS_HARD, name, src, dst, fp_h5_convert) >= 0 &&
                       H5Tregister(H5T_PERS_HARD, name, src, dst, fp_h5_convert) >= 0;
    pair->registered_in = fp_h5_session();
    return taken;
}

/* The library's own path is made at once, for the same reason. */
static bool give_back(struct h5_pair *pair)
{
    const hid_t src = fp_h5_side_type(pair->src), dst = fp_h5_side_type(pair->dst);
    if (H5Tunregister(H5T_PERS_HARD, NULL, src, dst, fp_h5_convert) < 0)
        return false;
    pair->registered_in = 0;
    H5T_cdata_t *cdata;
    return !pair->findings.has_conversion || H5Tfind(src, dst, &cdata) != NULL;
}

/* -------------------------------------------------------------------------- */
/* Profiles                                                                   */
/* -------------------------------------------------------------------------- */

/* What a profile does with a pair. */
struct decision {
    bool take;
    fpconv_h5_reason reason;
    struct h5_rule rule;
};

static struct decision decide(const struct h5_pair *pair, fpconv_h5_profile profile)
{
    const struct h5_findings *f = &pair->findings;
    const bool identical = profile == FPCONV_H5_IDENTICAL;
    if (profile == FPCONV_H5_OCP || profile == FPCONV_H5_OCP_SAT) {
        const fpconv_policy policy = profile == FPCONV_H5_OCP ? FPCONV_OCP : FPCONV_OCP_SAT;
        const struct h5_rule rule = {.policy = policy, .is_native = f->is_hard};
        return (struct decision){
            true, f->has_conversion ? FPCONV_H5_REASON_PROFILE : FPCONV_H5_REASON_NONE_BEFORE,
            rule};
    }
    if (!f->has_conversion)
        return (struct decision){!identical,
                                 identical ? FPCONV_H5_REASON_NOTHING_TO_COPY
                                           : FPCONV_H5_REASON_NONE_BEFORE,
                                 {.policy = FPCONV_HDF5}};
    if (identical ? !f->identical_known : !f->repaired_known)
        return (struct decision){false, FPCONV_H5_REASON_UNEXPLAINED, f->repaired};
    return (struct decision){
        true, f->differed[profile] ? FPCONV_H5_REASON_LOST_CARRY : FPCONV_H5_REASON_SAME,
        identical ? f->identical : f->repaired};
}

/* Leaves a pair to the library, or to a copy of what cannot be put back. */
static bool leave_to_library(struct h5_pair *pair)
{
    if (!is_ours(pair))
        return true;
    if (pair->findings.is_hard && pair->findings.identical_known) {
        fp_h5_set_rule(pair, pair->findings.identical);
        return true;
    }
    return give_back(pair);
}

static bool apply_decision(struct h5_pair *pair, const struct decision *decision)
{
    if (decision->take) {
        fp_h5_set_rule(pair, decision->rule);
        return is_ours(pair) || take(pair);
    }
    return leave_to_library(pair);
}

static void fill_report(fpconv_h5_report *report, const struct h5_pair *pair,
                        fpconv_h5_profile profile, const struct decision *decision)
{
    const struct h5_findings *f = &pair->findings;
    report->pairs[report->pair_count++] = (fpconv_h5_pair_report){
        .src = pair->src->format,
        .dst = pair->dst->format,
        .src_order = pair->src->order,
        .dst_order = pair->dst->order,
        .registered = decision->take,
        .reason = decision->reason,
        .probes = f->probes,
        .differed = f->differed[profile],
        .bugs = f->bugs,
    };
    report->registered_count += decision->take;
}

/* -------------------------------------------------------------------------- */
/* The work, under the lock                                                   */
/* -------------------------------------------------------------------------- */

struct request {
    fpconv_h5_profile profile;
    fpconv_h5_report *report;
};

#define FOR_EACH_PAIR(pair)                                                  \
    for (struct h5_pair *pair = &fp_h5_pairs[0][0],                          \
                        *end = &fp_h5_pairs[0][0] + SIDE_COUNT * SIDE_COUNT; \
         pair < end; pair++)                                                 \
        if (pair->src)

static bool begin_session(void)
{
    fp_h5_make_pairs();
    return fp_h5_session() != 0;
}

/* Once a process: the linked library does not change. */
static bool probe_all(void)
{
    struct probes *room = calloc(1, sizeof(*room));
    if (!room)
        return false;
    FOR_EACH_PAIR(pair)
    if (!pair->findings.is_probed)
        fp_h5_probe(pair, room);
    free(room);
    return true;
}

static bool unregister_all(void *unused)
{
    (void)unused;
    bool done = begin_session();
    FOR_EACH_PAIR(pair)
    done = done && leave_to_library(pair);
    return done;
}

static bool register_all(void *argument)
{
    const struct request *request = argument;
    fpconv_h5_report *report = request->report;
    if (!begin_session() || !probe_all())
        return false;
    if (report) {
        *report = (fpconv_h5_report){.profile = request->profile};
        H5get_libversion(&report->library_version[0], &report->library_version[1],
                         &report->library_version[2]);
    }
    FOR_EACH_PAIR(pair)
    {
        const struct decision decision = decide(pair, request->profile);
        if (!apply_decision(pair, &decision)) {
            unregister_all(NULL);
            return false;
        }
        if (report)
            fill_report(report, pair, request->profile, &decision);
    }
    return true;
}

struct pair_request {
    const struct h5_side *src, *dst;
    struct h5_pair pair;
};

static bool current_pair(void *argument)
{
    struct pair_request *request = argument;
    if (!begin_session())
        return false;
    struct h5_pair *pair = fp_h5_find_pair(request->src, request->dst);
    if (!pair || (!is_ours(pair) && !probe_all()))
        return false;
    request->pair = *pair;
    if (is_ours(pair))
        return true;
    const struct decision decision = decide(pair, FPCONV_H5_REPAIRED);
    fp_h5_set_rule(&request->pair, decision.rule);
    return decision.take;
}

bool fp_h5_current_pair(const struct h5_side *src, const struct h5_side *dst, struct h5_pair *pair)
{
    struct pair_request request = {.src = src, .dst = dst};
    const bool found = fp_h5_run_locked(current_pair, &request);
    *pair = request.pair;
    return found;
}

/* -------------------------------------------------------------------------- */
/* Exported                                                                   */
/* -------------------------------------------------------------------------- */

herr_t fpconv_h5_register_profile(fpconv_h5_profile profile, fpconv_h5_report *report)
{
    struct request request = {profile, report};
    if (!fpconv_h5_profile_name(profile)) {
        fp_h5_push_error(__func__, __LINE__, NULL, "the profile is not one of fpconv_h5_profile");
        return -1;
    }
    char message[900];
    if (!fp_h5_library_is_in_use(message, sizeof(message))) {
        fp_h5_push_error(__func__, __LINE__, NULL, message);
        return -1;
    }
    if (fp_h5_run_locked(register_all, &request))
        return 0;
    fp_h5_push_error(__func__, __LINE__, NULL, "cannot register the converters with HDF5");
    return -1;
}

herr_t fpconv_h5_register(void)
{
    return fpconv_h5_register_profile(FPCONV_H5_REPAIRED, NULL);
}

herr_t fpconv_h5_unregister(void)
{
    if (fp_h5_run_locked(unregister_all, NULL))
        return 0;
    fp_h5_push_error(__func__, __LINE__, NULL, "cannot unregister the converters from HDF5");
    return -1;
}

const char *fpconv_h5_profile_name(fpconv_h5_profile profile)
{
    static const char *const names[FPCONV_H5_PROFILE_COUNT] = {[FPCONV_H5_REPAIRED] = "repaired",
                                                               [FPCONV_H5_IDENTICAL] = "identical",
                                                               [FPCONV_H5_OCP] = "ocp",
                                                               [FPCONV_H5_OCP_SAT] = "ocp_sat"};
    return (unsigned)profile < FPCONV_H5_PROFILE_COUNT ? names[profile] : NULL;
}

const char *fpconv_h5_reason_text(fpconv_h5_reason reason)
{
    switch (reason) {
    case FPCONV_H5_REASON_SAME:
        return "every probe gave the linked library's bits";
    case FPCONV_H5_REASON_LOST_CARRY:
        return "it differs from the linked library only where that loses a carry";
    case FPCONV_H5_REASON_PROFILE:
        return "the profile says what to return, whatever the library does";
    case FPCONV_H5_REASON_NONE_BEFORE:
        return "the linked library has no conversion of its own";
    case FPCONV_H5_REASON_UNEXPLAINED:
        return "the linked library gives results that fpconv cannot explain";
    case FPCONV_H5_REASON_NOTHING_TO_COPY:
        return "the linked library has no conversion to be identical to";
    }
    return "unknown reason";
}
