// Interfaces: centroid, covariance and the linear map that fits the motion of the points best (P1 eq. 1 to 4).
#include "libdomain/frame.h"

#include <string.h>

void domain_interface_destroy(domain_interface *interface) {
    fem_free(interface->a);
    fem_free(interface->B);
    *interface = (domain_interface){0};
}

static fem_status check(int count, const double *points, const double *weights, int r, const double *rows,
                        const double *rest) {
    if (count < 3)
        return fem_fail(FEM_BAD_INPUT, "interface: %d points, expected at least three that are not on a line", count);
    if (r < 0) return fem_fail(FEM_BAD_INPUT, "interface: %d modes, expected >= 0", r);
    for (int k = 0; k < count; k++) {
        const double *X = points + 3 * (size_t)k;
        if (!isfinite(X[0]) || !isfinite(X[1]) || !isfinite(X[2]))
            return fem_fail(FEM_BAD_INPUT, "interface: point %d is not finite", k);
        if (weights && !(weights[k] > 0 && isfinite(weights[k])))
            return fem_fail(FEM_BAD_INPUT, "interface: weight %d is %g, expected > 0", k, weights[k]);
    }
    for (size_t i = 0; i < 3 * (size_t)count * (size_t)r; i++)
        if (!isfinite(rows[i])) return fem_fail(FEM_BAD_INPUT, "interface: mode rows hold numbers that are not finite");
    if (!rest) return FEM_OK;
    double N[9], error = fabs(mat3_det(rest) - 1);
    mat3_mul_nt(N, rest, rest);
    for (int i = 0; i < 9; i++) error = fmax(error, fabs(N[i] - (i % 4 == 0)));
    if (!(error < 1e-9)) return fem_fail(FEM_BAD_INPUT, "interface: the rest rotation is not a rotation");
    return FEM_OK;
}

// Weighted centroid and covariance C = sum w (X - x)(X - x)^T; the sum of the weights.
static double covariance(int count, const double *points, const double *weights, double x[3], double C[9]) {
    double total = 0;
    x[0] = x[1] = x[2] = 0;
    for (int k = 0; k < count; k++) {
        double w = weights ? weights[k] : 1;
        vec3_axpy(x, w, points + 3 * (size_t)k);
        total += w;
    }
    for (int i = 0; i < 3; i++) x[i] /= total;
    memset(C, 0, 9 * sizeof *C);
    for (int k = 0; k < count; k++) {
        double d[3];
        vec3_sub(d, points + 3 * (size_t)k, x);
        for (int i = 0; i < 9; i++) C[i] += (weights ? weights[k] : 1) * d[i / 3] * d[i % 3];
    }
    return total;
}

// Axes of the fit and M = C^-1 T (thick: T = I) or M = C+ [t1 t2] (flat: the third column is not used).
static fem_status fit_axes(domain_interface *interface, const double C[9], double M[9]) {
    double eigenvalues[3], V[9]; // columns of V (column-major here) are the eigenvectors, ascending
    memcpy(V, C, sizeof V);
    fem_status status = dense_symmetric_eigen(3, V, eigenvalues);
    if (status != FEM_OK) return status;
    if (!(eigenvalues[2] > 0) || !(eigenvalues[1] > 1e-10 * eigenvalues[2]))
        return fem_fail(FEM_BAD_INPUT, "interface: the points lie on a line; a frame needs three that do not");
    interface->spread = sqrt(eigenvalues[2] / interface->weight);
    interface->flat = eigenvalues[0] < DOMAIN_FLAT * eigenvalues[2];
    if (!interface->flat) {
        mat3_identity(interface->T);
        mat3_inverse(M, C);
        return FEM_OK;
    }
    const double *normal = V, *t1 = V + 6;
    double        t2[3];
    vec3_cross(t2, normal, t1);
    for (int i = 0; i < 3; i++) {
        interface->T[3 * i] = t1[i], interface->T[3 * i + 1] = t2[i], interface->T[3 * i + 2] = normal[i];
        M[3 * i] = t1[i] / eigenvalues[2], M[3 * i + 1] = t2[i] / eigenvalues[1], M[3 * i + 2] = 0;
    }
    return FEM_OK;
}

// a^l = sum w U_k^l / sum w and F^l = sum w (U_k^l - a^l)(X_k - x)^T M; subtracting a^l changes nothing, the (X_k - x)
// having no mean.
static void fit_modes(domain_interface *interface, int count, const double *points, const double *weights,
                      const double *rows, const double M[9]) {
    size_t stride = (size_t)interface->stride;
    for (int k = 0; k < count; k++) {
        double w = weights ? weights[k] : 1, d[3], e[3];
        vec3_sub(d, points + 3 * (size_t)k, interface->x);
        for (int j = 0; j < 3; j++) e[j] = w * (d[0] * M[j] + d[1] * M[3 + j] + d[2] * M[6 + j]);
        for (int l = 0; l < interface->r; l++) {
            const double *u = rows + 3 * ((size_t)count * (size_t)l + (size_t)k);
            for (int i = 0; i < 3; i++) {
                interface->a[stride * (size_t)i + (size_t)l] += w / interface->weight * u[i];
                for (int j = 0; j < (interface->flat ? 2 : 3); j++)
                    interface->F[stride * (size_t)(3 * j + i) + (size_t)l] += e[j] * u[i];
            }
        }
    }
}

fem_status domain_interface_create(domain_interface *interface, int count, const double *points, const double *weights,
                                   int r, const double *rows, const double *rest) {
    fem_status       status = FEM_OK;
    domain_interface made = {.r = r};
    double           C[9], M[9];
    FEM_TRY(check(count, points, weights, r, rows, rest));
    made.stride = (r + 7) / 8 * 8;
    made.weight = covariance(count, points, weights, made.x, C);
    FEM_TRY(fit_axes(&made, C, M));
    made.a = fem_calloc(12 * (size_t)made.stride, sizeof *made.a);
    if (!made.a) {
        status = fem_fail(FEM_NO_MEMORY, "interface: %d modes", r);
        goto done;
    }
    made.F = made.a + 3 * (size_t)made.stride;
    fit_modes(&made, count, points, weights, rows, M);
    if (rest)
        memcpy(made.rest, rest, sizeof made.rest);
    else
        mat3_identity(made.rest);
    for (int i = 0; i < 9; i++) { // T^T rest
        made.turn[i] = 0;
        for (int k = 0; k < 3; k++) made.turn[i] += made.T[3 * k + i / 3] * made.rest[3 * k + i % 3];
    }
    *interface = made;
    made.a = NULL;
done:
    fem_free(made.a);
    return status;
}

// ---- the child's pull --------------------------------------------------------------------------------------------

// G^T of the fields that the affine fit knows: three translations, and for column j of F, entry i, the field
// e_i (d . t_j), of flat interfaces with what it does to the normal: n (d . N), n = e_i x t2 or t1 x e_i.
typedef struct pull_of_fit {
    double translation[6][3];
    double column[3][6][3];
} pull_of_fit;

static void pull_fields(const domain_interface *f, int count, const double *points, const double *G,
                        pull_of_fit *pull) {
    double along[4][6][3] = {{{0}}}; // sum_k G_k^T times 1 (last) and times d . T_j
    for (int k = 0; k < count; k++) {
        double d[3], t[4] = {0, 0, 0, 1};
        vec3_sub(d, points + 3 * (size_t)k, f->x);
        for (int j = 0; j < 3; j++) t[j] = d[0] * f->T[j] + d[1] * f->T[3 + j] + d[2] * f->T[6 + j];
        for (int j = 0; j < 4; j++)
            for (int c = 0; c < 6; c++) vec3_axpy(along[j][c], t[j], G + 3 * ((size_t)count * (size_t)c + (size_t)k));
    }
    memcpy(pull->translation, along[3], sizeof pull->translation);
    memcpy(pull->column, along, sizeof pull->column);
    for (int i = 0; f->flat && i < 3; i++) {
        double e[3] = {i == 0, i == 1, i == 2}, t1[3] = {f->T[0], f->T[3], f->T[6]}, n[2][3];
        double t2[3] = {f->T[1], f->T[4], f->T[7]};
        vec3_cross(n[0], e, t2);
        vec3_cross(n[1], t1, e);
        for (int j = 0; j < 2; j++)
            for (int c = 0; c < 6; c++) pull->column[j][c][i] += vec3_dot(along[2][c], n[j]);
    }
}

fem_status domain_interface_set_pull(domain_interface *f, int count, const double *points, const double *rows,
                                     const double *G) {
    pull_of_fit pull;
    size_t      stride = (size_t)f->stride;
    int         columns = f->flat ? 2 : 3;
    for (size_t i = 0; i < 18 * (size_t)count; i++)
        if (!isfinite(G[i])) return fem_fail(FEM_BAD_INPUT, "interface: the pull holds numbers that are not finite");
    pull_fields(f, count, points, G, &pull);
    for (size_t l = 0; l < (size_t)f->r; l++) {
        double move[6], turn[3];
        for (int c = 0; c < 6; c++) {
            move[c] = dense_dot(3 * count, G + 3 * (size_t)count * (size_t)c, rows + 3 * (size_t)count * l);
            for (size_t i = 0; i < 3; i++) {
                move[c] -= pull.translation[c][i] * f->a[stride * i + l];
                for (size_t j = 0; j < (size_t)columns; j++)
                    move[c] -= pull.column[j][c][i] * f->F[stride * (3 * j + i) + l];
            }
        }
        for (size_t i = 0; i < 3; i++) f->a[stride * i + l] += move[i];
        for (size_t j = 0; j < (size_t)columns; j++) {
            double axis[3] = {f->T[j], f->T[3 + j], f->T[6 + j]};
            vec3_cross(turn, move + 3, axis);
            for (size_t i = 0; i < 3; i++) f->F[stride * (3 * j + i) + l] += turn[i];
        }
    }
    return FEM_OK;
}

// w = sum_j turn[j] F_j at rest: 1/2 sum_j t_j x F_j, of flat interfaces with the third column that the two make.
static void turn_of_columns(const domain_interface *f, double turn[3][9]) {
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 3; i++) {
            double e[3] = {i == 0, i == 1, i == 2}, t[3][3], w[3], n[3];
            for (int k = 0; k < 3; k++)
                for (int c = 0; c < 3; c++) t[c][k] = f->T[3 * k + c];
            vec3_cross(w, t[j], e);
            if (f->flat) {
                double third[3];
                if (j == 0) vec3_cross(third, e, t[1]);
                if (j == 1) vec3_cross(third, t[0], e);
                if (j == 2) third[0] = third[1] = third[2] = w[0] = w[1] = w[2] = 0;
                vec3_cross(n, t[2], third);
                for (int k = 0; k < 3; k++) w[k] += n[k];
            }
            for (int k = 0; k < 3; k++) turn[j][3 * k + i] = 0.5 * w[k];
        }
}

fem_status domain_interface_wrenches(int count, const double *points, const double *weights, const double *G,
                                     double *forces) {
    domain_interface f = {0};
    pull_of_fit      pull = {0};
    double           C[9], M[9], turn[3][9];
    fem_status       status = check(count, points, weights, 0, NULL, NULL);
    if (status != FEM_OK) return status;
    f.weight = covariance(count, points, weights, f.x, C);
    status = fit_axes(&f, C, M);
    if (status != FEM_OK) return status;
    turn_of_columns(&f, turn);
    if (G) pull_fields(&f, count, points, G, &pull);
    for (int k = 0; k < count; k++) {
        double w = weights ? weights[k] : 1, d[3], e[3];
        vec3_sub(d, points + 3 * (size_t)k, f.x);
        for (int j = 0; j < 3; j++) e[j] = w * (d[0] * M[j] + d[1] * M[3 + j] + d[2] * M[6 + j]);
        for (int c = 0; c < 6; c++)
            for (int i = 0; i < 3; i++) {
                size_t at = 3 * ((size_t)count * (size_t)c + (size_t)k) + (size_t)i;
                double sum = (G ? G[at] : 0) + w / f.weight * ((c == i) - pull.translation[c][i]);
                for (int j = 0; j < (f.flat ? 2 : 3); j++)
                    sum += e[j] * ((c >= 3 ? turn[j][3 * (c - 3) + i] : 0) - pull.column[j][c][i]);
                forces[at] = sum;
            }
    }
    return FEM_OK;
}

fem_status domain_interface_strains(int count, const double *points, const double *weights, int r, const double *rows,
                                    double *F, double *fields) {
    domain_interface f = {.r = r};
    double           C[9], V[9], eigenvalues[3], t[3][3];
    fem_status       status = check(count, points, weights, r, rows, NULL);
    if (status != FEM_OK) return status;
    f.weight = covariance(count, points, weights, f.x, C);
    memcpy(V, C, sizeof V);
    status = dense_symmetric_eigen(3, V, eigenvalues);
    if (status != FEM_OK) return status;
    memcpy(t[2], V, sizeof t[2]); // the normal
    memcpy(t[0], V + 6, sizeof t[0]);
    vec3_cross(t[1], t[2], t[0]);
    for (int l = 0; l < r; l++) {
        const double *u = rows + 3 * (size_t)count * (size_t)l;
        double       *f1 = F + 6 * (size_t)l, *f2 = f1 + 3;
        memset(f1, 0, 6 * sizeof *f1);
        for (int k = 0; k < count; k++) {
            double w = weights ? weights[k] : 1, d[3];
            vec3_sub(d, points + 3 * (size_t)k, f.x);
            vec3_axpy(f1, w * vec3_dot(d, t[0]) / eigenvalues[2], u + 3 * (size_t)k);
            vec3_axpy(f2, w * vec3_dot(d, t[1]) / eigenvalues[1], u + 3 * (size_t)k);
        }
    }
    for (int k = 0; k < count; k++) {
        double d[3], *field[6];
        for (int e = 0; e < 6; e++) field[e] = fields + 3 * ((size_t)count * (size_t)e + (size_t)k);
        vec3_sub(d, points + 3 * (size_t)k, f.x);
        double x = vec3_dot(d, t[0]), y = vec3_dot(d, t[1]), z = vec3_dot(d, t[2]);
        for (int i = 0; i < 3; i++)
            field[0][i] = x * t[0][i], field[1][i] = y * t[1][i], field[2][i] = y * t[0][i] + x * t[1][i];
        for (int e = 0; e < 9; e++) field[3 + e / 3][e % 3] = e % 4 == 0 ? z : 0;
    }
    return FEM_OK;
}
