// The two loops of the precomputation: strain monomials at eight integration points side by side, and the tiles of
// their Gram matrix. Compiled once per vector width.
#include "libcubature/internal.h"

#include "libcubature/lanes.h"

// ---- strain --------------------------------------------------------------------------------------------------------

// H_ij = sum_a (u_a)_i dN_a/dX_j of eight modes side by side at each of eight points; then points side by side
void JOIN(cubature_mode_gradients, SIMD_SUFFIX)(const gram_block *b, int first) {
    for (int mode = 0; mode < b->modes; mode += 8) {
        real H[9][8];
        for (int p = 0; p < 8; p++) {
            const int    *v = b->vertices + 8 * (size_t)(first + p);
            const double *g = b->g + 24 * (size_t)(first + p);
            real          h[9];
            UNROLL for (int i = 0; i < 9; i++) h[i] = (real){0};
            for (int a = 0; a < b->width; a++) UNROLL for (int i = 0; i < 3; i++) {
                    real u = load(b->Ut + (3 * (size_t)v[a] + (size_t)i) * (size_t)b->modes + (size_t)mode);
                    UNROLL for (int j = 0; j < 3; j++) h[3 * i + j] += u * g[3 * a + j];
                }
            if (b->frame) {
                const double *R = b->frame;
                real          T[9]; // H R
                UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = 0; j < 3; j++) T[3 * i + j] =
                    h[3 * i] * R[j] + h[3 * i + 1] * R[3 + j] + h[3 * i + 2] * R[6 + j];
                UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = 0; j < 3; j++) h[3 * i + j] =
                    R[i] * T[j] + R[3 + i] * T[3 + j] + R[6 + i] * T[6 + j];
            }
            UNROLL for (int i = 0; i < 9; i++) H[i][p] = b->root[first + p] * h[i];
        }
        for (int i = 0; i < 9; i++) {
            transpose(H[i]);
            double *out = b->H + ((size_t)mode * 9 + (size_t)i) * (size_t)b->points + (size_t)first;
            for (int lane = 0; lane < 8; lane++) store(out + (size_t)lane * 9 * (size_t)b->points, H[i][lane]);
        }
    }
}

// L_high = sym(H) or B = sym(H_low^T H_high) at eight points as e1 e2 e3 g12 g23 g31, g being twice the tensor's
static inline void strain(real e[6], const gram_block *b, strain_column column, int point) {
    real          A[9], B[9];
    size_t        stride = 9 * (size_t)b->points;
    const double *high = b->H + (size_t)column.high * stride + (size_t)point;
    UNROLL for (int i = 0; i < 9; i++) B[i] = load(high + i * b->points);
    if (column.low < 0) {
        real root = load(b->root + point);
        UNROLL for (int i = 0; i < 3; i++) {
            const int k = (i + 1) % 3;
            e[i] = root * B[4 * i];
            e[3 + i] = root * (B[3 * i + k] + B[3 * k + i]);
        }
        return;
    }
    const double *low = b->H + (size_t)column.low * stride + (size_t)point;
    UNROLL for (int i = 0; i < 9; i++) A[i] = load(low + i * b->points);
    UNROLL for (int i = 0; i < 3; i++) {
        const int k = (i + 1) % 3;
        e[i] = A[i] * B[i] + A[3 + i] * B[3 + i] + A[6 + i] * B[6 + i];
        e[3 + i] = A[i] * B[k] + A[k] * B[i] + A[3 + i] * B[3 + k] + A[3 + k] * B[3 + i] + A[6 + i] * B[6 + k] +
                   A[6 + k] * B[6 + i];
    }
}

void JOIN(cubature_strain_panel, SIMD_SUFFIX)(const gram_block *b, int panel) {
    double *Z = b->Z + (size_t)panel * (size_t)(b->row_count * b->points) * GRAM_PANEL;
    for (int first = 0; first < GRAM_PANEL; first += 8)
        for (int point = 0; point < b->points; point += 8) {
            real e[8][6], x[8];
            for (int c = 0; c < 8; c++) {
                strain_column column = b->columns[panel * GRAM_PANEL + first + c];
                if (column.high < 0)
                    memset(e[c], 0, sizeof e[c]);
                else
                    strain(e[c], b, column, point);
            }
            for (int row = 0; row < b->row_count; row++) {
                const strain_row *s = &b->rows[row];
                for (int c = 0; c < 8; c++) {
                    x[c] = s->factor[0] * e[c][s->strain[0]];
                    for (int t = 1; t < s->terms; t++) x[c] += s->factor[t] * e[c][s->strain[t]];
                }
                transpose(x);
                double *out = Z + (size_t)(row * b->points + point) * GRAM_PANEL + first;
                for (int lane = 0; lane < 8; lane++) store(out + lane * GRAM_PANEL, x[lane]);
            }
        }
}

// ---- Gram matrix
// -----------------------------------------------------------------------------------------------------

// MI columns of one panel times MV x 8 columns of another: as many sums as the registers hold.
#if defined(__AVX512F__)
enum { MI = 8, MV = 3 };
#else
enum { MI = 6, MV = 1 };
#endif

// `wide` vectors of columns, 1 .. MV
static inline __attribute__((always_inline)) void micro_tile(int wide, int rows, const double *x, const double *y,
                                                             double *G) {
    real sum[MI][MV];
    UNROLL for (int i = 0; i < MI; i++) UNROLL for (int v = 0; v < wide; v++) sum[i][v] =
        load(G + i * GRAM_TILE + 8 * v);
    do {
        real z[MV];
        UNROLL for (int v = 0; v < wide; v++) z[v] = load(y + 8 * v);
        UNROLL for (int i = 0; i < MI; i++) UNROLL for (int v = 0; v < wide; v++) sum[i][v] += x[i] * z[v];
        x += GRAM_PANEL, y += GRAM_PANEL;
    } while (--rows > 0);
    UNROLL for (int i = 0; i < MI; i++) UNROLL for (int v = 0; v < wide; v++)
        store(G + i * GRAM_TILE + 8 * v, sum[i][v]);
}

// One panel times another, of which `rows` and `columns` columns are used; of a panel times itself only what is not
// left of the diagonal.
static void panel_product(const gram_block *b, int rows, int columns, const double *x, const double *y, double *G) {
    for (int i = 0; i < rows; i += MI)
        for (int j = x == y ? i / 8 * 8 : 0; j < columns; j += 8 * MV) {
            double *g = G + i * GRAM_TILE + j;
            if (MV >= 3 && columns - j >= 24)
                micro_tile(3, b->points, x + i, y + j, g);
            else if (MV >= 2 && columns - j >= 16)
                micro_tile(2, b->points, x + i, y + j, g);
            else
                micro_tile(1, b->points, x + i, y + j, g);
        }
}

// Columns of a panel in whole vectors: the last one may be shorter than the others.
static int panel_columns(const gram_block *b, int panel) {
    int used = (b->column_count - panel * GRAM_PANEL + 7) / 8 * 8;
    return used < GRAM_PANEL ? used : GRAM_PANEL;
}

// Kinds of rows are the outer loop: what a tile needs of one kind (8 panels, 150 kB) stays in the second cache and is
// used four times, each panel of x in the first.
void JOIN(cubature_gram_tile, SIMD_SUFFIX)(const gram_block *b, int first, int count, int s, int t, double *G) {
    size_t part = (size_t)b->points * GRAM_PANEL, panel = (size_t)b->row_count * part;
    for (int row = first; row < first + count; row++)
        for (int I = s * TILE_PANELS; I < (s + 1) * TILE_PANELS && I < b->panels; I++)
            for (int J = s == t ? I : t * TILE_PANELS; J < (t + 1) * TILE_PANELS && J < b->panels; J++) {
                const double *x = b->Z + (size_t)I * panel + (size_t)row * part;
                const double *y = b->Z + (size_t)J * panel + (size_t)row * part;
                panel_product(b, panel_columns(b, I), panel_columns(b, J), x, y,
                              G + ((I % TILE_PANELS) * GRAM_TILE + J % TILE_PANELS) * GRAM_PANEL);
            }
}
