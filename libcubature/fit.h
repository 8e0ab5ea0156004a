// Choice of elements and weights for a training matrix.
#ifndef LIMBER_FIT_H
#define LIMBER_FIT_H

#include "libcubature/trainer.h"

// What a fit gives: elements with their weights, not yet a rule.
typedef struct fitted {
    int     count;
    int    *elements; // any order
    double *weights;  // count, or count x r
    bool    modal;
    double  error, modal_error;
    int     steps; // of optimized cubature
} fitted;
void fitted_destroy(fitted *f);

fem_status fit_modal_weights(const trainer *t, int count, const int *elements, fitted *result);
fem_status fit_single_weights(const trainer *t, int count, const int *elements, fitted *result);
fem_status fit_modal(const trainer *t, const cubature_training_options *o, const fem_progress *progress,
                     fitted *result);
// Goes on from the elements and the number of steps of `start` (NULL: from nothing); when progress stops it, `result`
// holds what was chosen so far.
fem_status fit_optimized(const trainer *t, const cubature_training_options *o, const fem_progress *progress,
                         const fitted *start, fitted *result);
fem_status fit_empirical(const trainer *t, const cubature_training_options *o, const fem_progress *progress,
                         fitted *result);
// All of it (fit.c): a rule of a fit; the fit that the options ask for, with its report; and as cubature_fit and
// cubature_fit_weights.
fem_status rule_of(cubature_rule *rule, const trainer *t, const fitted *f);
fem_status fit_from(cubature_rule *rule, const trainer *t, const cubature_training_options *options,
                    const fem_progress *progress, const fitted *start, fitted *f, cubature_training_report *report);
fem_status fit_rule(cubature_rule *rule, const reduced_body *reduced, const cubature_poses *poses,
                    const cubature_training_options *options, const fem_progress *progress,
                    cubature_training_report *report);
fem_status fit_weights(cubature_rule *rule, const reduced_body *reduced, const cubature_poses *poses, int count,
                       const int *elements, bool modal, bool balanced, cubature_training_report *report);
// |f~ - f| / |f| at one pose; -1 without force. work: error_work's, holds f~ - f afterwards.
double  pose_error(const cubature_forces *forces, const double *q, const double *f, double *work);
double *error_work(const cubature_forces *forces);
// As cubature_rule_error; modes (r x r, or NULL): balanced by them, not by the coordinates.
double rule_error(const cubature_rule *rule, const cubature_poses *poses, bool balanced, const double *modes);
// How far an error is on its way from 1 to the target, by their logarithms.
double fit_fraction(double error, double target);

#endif
