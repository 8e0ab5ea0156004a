// The frame of an interface for given reduced coordinates of the parent: pose, velocity, and the part of the
// acceleration that does not come from ddq. A sum over modes here, the rest is polar.c.
#include "libdomain/frame.h"

// y[i] = row i . q for `count` rows of `stride`
static void rows_times(const double *rows, int count, int stride, int r, const double *q, double *y) {
    for (int i = 0; i < count; i++) {
        const double *row = rows + (size_t)i * (size_t)stride;
        double        sum = 0;
        for (int l = 0; l < r; l++) sum += row[l] * q[l];
        y[i] = sum;
    }
}

// A[3 i + k] = F[3 k + i]: columns to row-major
static void matrix_of_columns(double A[9], const double F[9]) {
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++) A[3 * i + k] = F[3 * k + i];
}

void domain_frame_pose(const domain_interface *interface, const double *q, const double *guess, domain_frame *frame) {
    int    stride = interface->stride, r = interface->r;
    double A[9];
    rows_times(interface->a, 3, stride, r, q, frame->x);
    for (int i = 0; i < 3; i++) frame->x[i] += interface->x[i];
    rows_times(interface->F, interface->flat ? 6 : 9, stride, r, q, frame->F);
    for (int k = 0; k < (interface->flat ? 2 : 3); k++)
        for (int i = 0; i < 3; i++) frame->F[3 * k + i] += interface->T[3 * i + k];
    if (interface->flat) vec3_cross(frame->F + 6, frame->F, frame->F + 3);
    matrix_of_columns(A, frame->F);
    domain_polar_decompose(&frame->polar, A, guess);
    mat3_mul(frame->R, frame->polar.R, interface->turn);
}

void domain_frame_motion(const domain_interface *interface, const double *q, const double *dq, const double *guess,
                         domain_frame *frame) {
    int    stride = interface->stride, r = interface->r;
    double dF[9], dA[9], ddA[9] = {0};
    domain_frame_pose(interface, q, guess, frame);
    rows_times(interface->a, 3, stride, r, dq, frame->v);
    rows_times(interface->F, interface->flat ? 6 : 9, stride, r, dq, dF);
    if (interface->flat) { // d(f1 x f2) = df1 x f2 + f1 x df2, dd(f1 x f2) = 2 df1 x df2 for ddq = 0
        double *f = frame->F, s[3], t[3];
        vec3_cross(s, dF, f + 3);
        vec3_cross(t, f, dF + 3);
        for (int i = 0; i < 3; i++) dF[6 + i] = s[i] + t[i];
        vec3_cross(s, dF, dF + 3);
        for (int i = 0; i < 3; i++) ddA[3 * i + 2] = 2 * s[i];
    }
    matrix_of_columns(dA, dF);
    domain_polar_first(&frame->polar, dA, frame->w);
    domain_polar_second(&frame->polar, dA, interface->flat ? ddA : NULL, frame->w, frame->bias);
}

// g_l = 2 skew(F^l R^T) = sum_k r_k x f_k^l with the columns r_k of R; W_l = P g_l. For flat interfaces the third
// column's derivative f_3^l = f_1^l x f_2 + f_1 x f_2^l is linear in the other two: r_3 x (y x f) = y (r_3 . f) - f
// (r_3 . y).
void domain_frame_gradient(const domain_interface *interface, const domain_frame *frame, double *W) {
    size_t        stride = (size_t)interface->stride;
    const double *R = frame->polar.R, *P = frame->polar.P, *f1 = frame->F, *f2 = frame->F + 3;
    double        C[3][9]; // g_l = sum_k C_k f_k^l, then W_l = P g_l
    for (int k = 0; k < 3; k++) {
        double r[3] = {R[k], R[3 + k], R[6 + k]};
        double X[9] = {0, -r[2], r[1], r[2], 0, -r[0], -r[1], r[0], 0};
        for (int i = 0; i < 9; i++) C[k][i] = X[i];
    }
    if (interface->flat) {
        double n[3] = {R[2], R[5], R[8]}, n1 = vec3_dot(n, f1), n2 = vec3_dot(n, f2);
        // n x (f1^l x f2) = f1^l (n . f2) - f2 (n . f1^l);  n x (f1 x f2^l) = f1 (n . f2^l) - f2^l (n . f1)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                C[0][3 * i + j] += (i == j ? n2 : 0) - f2[i] * n[j];
                C[1][3 * i + j] += f1[i] * n[j] - (i == j ? n1 : 0);
            }
    }
    int columns = interface->flat ? 2 : 3;
    for (int k = 0; k < columns; k++) {
        double B[9];
        mat3_mul(B, P, C[k]);
        const double *f = interface->F + 3 * (size_t)k * stride;
        for (int i = 0; i < 3; i++) {
            double *row = W + stride * (size_t)i, b0 = B[3 * i], b1 = B[3 * i + 1], b2 = B[3 * i + 2];
            if (k == 0)
                for (size_t l = 0; l < stride; l++) row[l] = b0 * f[l] + b1 * f[stride + l] + b2 * f[2 * stride + l];
            else
                for (size_t l = 0; l < stride; l++) row[l] += b0 * f[l] + b1 * f[stride + l] + b2 * f[2 * stride + l];
        }
    }
}

double domain_frame_deviation(const domain_frame *frame) {
    double sum = 0;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++) {
            double d = frame->F[3 * k + i] - frame->polar.R[3 * i + k];
            sum += d * d;
        }
    return sqrt(sum / 3);
}
