// SVG by hand: no library is worth it for axes, polylines and polygons.
#include "bench/plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WIDTH = 640, HEIGHT = 420, LEFT = 70, RIGHT = 20, TOP = 36, BOTTOM = 52, SERIES_MOST = 16 };

typedef struct series {
    char   *name;
    int     count;
    double *x, *y;
    bool    bars;
} series;

struct plot {
    char  *title, *x_label, *y_label;
    bool   log_x, log_y;
    int    count;
    series all[SERIES_MOST];
};

static const char *const colours[] = {"#1f6fb4", "#d1495b", "#3a9d5d", "#8a5fbf",
                                      "#e08e2b", "#4fb3bf", "#6b6b6b", "#b5651d"};

static void *must(void *memory) {
    if (memory) return memory;
    fprintf(stderr, "no memory for a figure\n");
    exit(1);
}

static FILE *open_figure(const char *path) {
    char folder[512];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *c = folder + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            if (mkdir(folder, 0777) != 0 && errno != EEXIST) break; // fopen says it
            *c = '/';
        }
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    return out;
}

static void close_figure(FILE *out, const char *path) {
    if (fclose(out) == 0) return;
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(1);
}

static void put_text(FILE *out, const char *text) { // with the characters that XML keeps for itself
    for (; *text; text++) switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc(*text, out);
        }
}

static void text_at(FILE *out, double x, double y, const char *anchor, const char *more, const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor, more);
    put_text(out, text);
    fputs("</text>\n", out);
}

// ---- plots -----------------------------------------------------------------------------------------------------

plot *plot_create(const char *title, const char *x_label, const char *y_label, bool log_x, bool log_y) {
    plot *p = must(fem_calloc(1, sizeof *p));
    p->title = must(fem_copy_string(title));
    p->x_label = must(fem_copy_string(x_label));
    p->y_label = must(fem_copy_string(y_label));
    p->log_x = log_x, p->log_y = log_y;
    return p;
}

static void add_series(plot *p, const char *name, int count, const double *x, const double *y, bool bars) {
    if (p->count == SERIES_MOST) {
        fprintf(stderr, "%s: a figure has at most %d series\n", p->title, SERIES_MOST);
        exit(1);
    }
    p->all[p->count++] = (series){.name = must(fem_copy_string(name)),
                                  .count = count,
                                  .x = must(fem_copy(x, (size_t)count, sizeof *x)),
                                  .y = must(fem_copy(y, (size_t)count, sizeof *y)),
                                  .bars = bars};
}

void plot_series(plot *p, const char *name, int count, const double *x, const double *y) {
    add_series(p, name, count, x, y, false);
}

void plot_bars(plot *p, const char *name, int count, const double *x, const double *y) {
    add_series(p, name, count, x, y, true);
}

typedef struct axis {
    bool   logarithmic;
    double low, high;   // of the data, in logarithms where the axis is
    double from, pixel; // pixels = from + pixel * (value - low)
} axis;

static bool shown(const axis *a, double value) { return isfinite(value) && (!a->logarithmic || value > 0); }

static double place(const axis *a, double value) {
    return a->from + a->pixel * ((a->logarithmic ? log10(value) : value) - a->low);
}

static void widen(axis *a, double value) {
    if (!shown(a, value)) return;
    double v = a->logarithmic ? log10(value) : value;
    a->low = fmin(a->low, v), a->high = fmax(a->high, v);
}

static void finish_axis(axis *a, double from, double to) {
    if (!(a->low <= a->high)) a->low = 0, a->high = 1;
    double margin = a->high > a->low ? 0.04 * (a->high - a->low) : 0.5;
    a->low -= margin, a->high += margin;
    a->from = from;
    a->pixel = (to - from) / (a->high - a->low);
}

// Ticks at 1, 2 or 5 times a power of ten; on long logarithmic axes only at powers of ten.
static int ticks(const axis *a, double *values, int most) {
    int count = 0;
    if (a->logarithmic) {
        int every = (int)ceil((a->high - a->low) / 9), parts = a->high - a->low < 2 ? 3 : 1;
        for (int e = (int)floor(a->low); e <= a->high; e++)
            for (int part = 0; part < parts && e % every == 0 && count < most; part++) {
                double value = (double[]){1, 2, 5}[part] * pow(10, e), at = log10(value);
                if (at >= a->low && at <= a->high) values[count++] = value;
            }
        return count;
    }
    double step = pow(10, floor(log10((a->high - a->low) / 4)));
    if ((a->high - a->low) / step > 10) step *= (a->high - a->low) / step > 25 ? 5 : 2;
    for (double v = ceil(a->low / step) * step; v <= a->high && count < most; v += step)
        values[count++] = fabs(v) < 1e-9 * step ? 0 : v;
    return count;
}

static void draw_axes(FILE *out, const plot *p, const axis *x, const axis *y) {
    double values[32];
    char   label[32];
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n", LEFT, TOP,
            WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    for (int i = 0, count = ticks(x, values, 32); i < count; i++) {
        double at = place(x, values[i]);
        snprintf(label, sizeof label, "%g", values[i]);
        fprintf(out, "<path d=\"M%.1f %dV%d\" stroke=\"#e4e4e4\"/>\n", at, TOP, HEIGHT - BOTTOM);
        text_at(out, at, HEIGHT - BOTTOM + 16, "middle", "", label);
    }
    for (int i = 0, count = ticks(y, values, 32); i < count; i++) {
        double at = place(y, values[i]);
        snprintf(label, sizeof label, "%g", values[i]);
        fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#e4e4e4\"/>\n", LEFT, at, WIDTH - RIGHT);
        text_at(out, LEFT - 6, at + 4, "end", "", label);
    }
    text_at(out, WIDTH / 2.0, 22, "middle", " font-size=\"15\"", p->title);
    text_at(out, LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 14, "middle", "", p->x_label);
    char turn[96];
    snprintf(turn, sizeof turn, " transform=\"rotate(-90 16 %d)\"", (TOP + HEIGHT - BOTTOM) / 2);
    text_at(out, 16, (TOP + HEIGHT - BOTTOM) / 2.0, "middle", turn, p->y_label);
}

static void draw_series(FILE *out, const series *s, const char *colour, const axis *x, const axis *y, int bar,
                        int bars) {
    if (s->bars) {
        double wide = s->count > 1 ? fabs(place(x, s->x[1]) - place(x, s->x[0])) * 0.9 / bars : 10;
        for (int i = 0; i < s->count; i++) {
            if (!shown(x, s->x[i]) || !shown(y, s->y[i])) continue;
            double top = place(y, s->y[i]);
            fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                    place(x, s->x[i]) + wide * (bar - bars / 2.0), top, wide, fmax(0, HEIGHT - BOTTOM - top), colour);
        }
        return;
    }
    bool open = false;
    fputs("<path d=\"", out);
    for (int i = 0; i < s->count; i++) {
        if (!shown(x, s->x[i]) || !shown(y, s->y[i])) continue;
        fprintf(out, "%s%.1f %.1f", open ? "L" : "M", place(x, s->x[i]), place(y, s->y[i]));
        open = true;
    }
    fprintf(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"/>\n", colour);
    for (int i = 0; s->count <= 60 && i < s->count; i++)
        if (shown(x, s->x[i]) && shown(y, s->y[i]))
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", place(x, s->x[i]),
                    place(y, s->y[i]), colour);
}

// The numbers of the figure, beside it.
static void write_numbers(const plot *p, const char *path) {
    char        name[512];
    const char *end = strrchr(path, '.');
    snprintf(name, sizeof name, "%.*s.csv", end ? (int)(end - path) : (int)strlen(path), path);
    FILE *out = open_figure(name);
    fprintf(out, "series,%s,%s\n", p->x_label, p->y_label);
    for (int s = 0; s < p->count; s++)
        for (int i = 0; i < p->all[s].count; i++)
            fprintf(out, "\"%s\",%.9g,%.9g\n", p->all[s].name, p->all[s].x[i], p->all[s].y[i]);
    close_figure(out, name);
}

void plot_write(plot *p, const char *path) {
    write_numbers(p, path);
    axis x = {.logarithmic = p->log_x, .low = INFINITY, .high = -INFINITY};
    axis y = {.logarithmic = p->log_y, .low = INFINITY, .high = -INFINITY};
    int  bars = 0, bar = 0;
    for (int s = 0; s < p->count; s++) {
        bars += p->all[s].bars;
        if (p->all[s].bars) widen(&y, p->log_y ? 1 : 0);
        for (int i = 0; i < p->all[s].count; i++) widen(&x, p->all[s].x[i]), widen(&y, p->all[s].y[i]);
    }
    finish_axis(&x, LEFT, WIDTH - RIGHT);
    finish_axis(&y, HEIGHT - BOTTOM, TOP);
    FILE *out = open_figure(path);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(out, p, &x, &y);
    for (int s = 0; s < p->count; s++) {
        const char *colour = colours[s % (int)(sizeof colours / sizeof *colours)];
        draw_series(out, &p->all[s], colour, &x, &y, bar, bars ? bars : 1);
        bar += p->all[s].bars;
        fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"4\" fill=\"%s\"/>\n", LEFT + 10, TOP + 12 + 16 * s,
                colour);
        text_at(out, LEFT + 30, TOP + 18 + 16 * s, "start", "", p->all[s].name);
        fem_free(p->all[s].name), fem_free(p->all[s].x), fem_free(p->all[s].y);
    }
    fputs("</svg>\n", out);
    close_figure(out, path);
    fem_free(p->title), fem_free(p->x_label), fem_free(p->y_label);
    fem_free(p);
}

void plot_matrices(const char *title, int count, const char *const *names, int n, const double *values, double least,
                   const char *path) {
    const double cell = 6, gap = 20, side = cell * n, wide = gap + count * (side + gap), high = side + 80;
    FILE        *out = open_figure(path);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"white\"/>\n",
            wide, high, wide, high);
    text_at(out, wide / 2, 22, "middle", " font-size=\"15\"", title);
    for (int m = 0; m < count; m++) {
        double        left = gap + m * (side + gap), top = 40;
        const double *A = values + (size_t)m * (size_t)n * (size_t)n;
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#888\"/>\n",
                left, top, side, side);
        for (int k = 0; k < n * n; k++) {
            double size = fabs(A[k]), dark = size > least ? fmin(1, 1 - log(size) / log(least)) : 0;
            int    grey = (int)(255 * (1 - dark));
            if (grey < 255)
                fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#%02x%02x%02x\"/>\n",
                        left + cell * (k / n), top + cell * (k % n), cell, cell, grey, grey, grey);
        }
        text_at(out, left + side / 2, top + side + 20, "middle", "", names[m]);
    }
    fputs("</svg>\n", out);
    close_figure(out, path);
}

// ---- pictures --------------------------------------------------------------------------------------------------

typedef struct facet {
    double at[6];  // three corners on the picture's plane
    double depth;  // along the view, far is large
    double light;  // 0..1
    int    colour; // index into the picture's
} facet;

struct picture {
    char  *title;
    double right[3], up[3], view[3]; // orthonormal
    size_t count, capacity;
    facet *facets;
    int    bodies;
    char   colours[SERIES_MOST][16];
};

picture *picture_create(const char *title, const double view[3], const double up[3]) {
    picture *p = must(fem_calloc(1, sizeof *p));
    p->title = must(fem_copy_string(title));
    memcpy(p->view, view, sizeof p->view);
    vec3_normalize(p->view);
    vec3_cross(p->right, p->view, up);
    vec3_normalize(p->right);
    vec3_cross(p->up, p->right, p->view);
    return p;
}

void picture_body(picture *p, const fem_mesh *mesh, const double *u, const char *colour) {
    int triangle_count = 0, *triangles = NULL;
    if (p->bodies == SERIES_MOST || fem_mesh_surface(mesh, &triangle_count, &triangles, NULL) != FEM_OK ||
        fem_grow((void **)&p->facets, &p->capacity, p->count + (size_t)triangle_count, sizeof *p->facets) != FEM_OK) {
        fprintf(stderr, "%s: %s\n", p->title, fem_message());
        exit(1);
    }
    snprintf(p->colours[p->bodies], sizeof p->colours[0], "%s", colour);
    for (int t = 0; t < triangle_count; t++) {
        double x[3][3], a[3], b[3], normal[3];
        facet  f = {.colour = p->bodies};
        for (int k = 0; k < 3; k++) {
            size_t v = 3 * (size_t)triangles[3 * t + k];
            for (int i = 0; i < 3; i++) x[k][i] = mesh->vertices[v + (size_t)i] + (u ? u[v + (size_t)i] : 0);
            f.at[2 * k] = vec3_dot(p->right, x[k]);
            f.at[2 * k + 1] = vec3_dot(p->up, x[k]);
            f.depth += vec3_dot(p->view, x[k]) / 3;
        }
        vec3_sub(a, x[1], x[0]);
        vec3_sub(b, x[2], x[0]);
        vec3_cross(normal, a, b);
        vec3_normalize(normal);
        double towards = -vec3_dot(normal, p->view), sideways = vec3_dot(normal, p->up) + vec3_dot(normal, p->right);
        if (!(towards > 0)) continue; // its back
        f.light = fmin(1, 0.35 + 0.4 * towards + 0.2 * sideways);
        p->facets[p->count++] = f;
    }
    p->bodies++;
    fem_free(triangles);
}

static int farther(const void *a, const void *b) {
    double x = ((const facet *)a)->depth, y = ((const facet *)b)->depth;
    return (x < y) - (x > y);
}

void picture_write(picture *p, const char *path) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < p->count; i++)
        for (int k = 0; k < 6; k++) {
            low[k % 2] = fmin(low[k % 2], p->facets[i].at[k]);
            high[k % 2] = fmax(high[k % 2], p->facets[i].at[k]);
        }
    double scale = fmin((WIDTH - 40) / fmax(high[0] - low[0], 1e-300), (HEIGHT - 70) / fmax(high[1] - low[1], 1e-300));
    double left = (WIDTH - scale * (high[0] - low[0])) / 2, top = 40 + (HEIGHT - 60 - scale * (high[1] - low[1])) / 2;
    qsort(p->facets, p->count, sizeof *p->facets, farther);
    FILE *out = open_figure(path);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    text_at(out, WIDTH / 2.0, 24, "middle", " font-size=\"15\"", p->title);
    for (size_t i = 0; i < p->count; i++) {
        const facet *f = &p->facets[i];
        unsigned     rgb = (unsigned)strtoul(p->colours[f->colour] + 1, NULL, 16), shade[3];
        for (int c = 0; c < 3; c++) shade[c] = (unsigned)(f->light * (rgb >> (16 - 8 * c) & 255));
        fprintf(out, "<path d=\"");
        for (int k = 0; k < 3; k++)
            fprintf(out, "%c%.1f %.1f", k ? 'L' : 'M', left + scale * (f->at[2 * k] - low[0]),
                    top + scale * (high[1] - f->at[2 * k + 1]));
        fprintf(out, "z\" fill=\"#%02x%02x%02x\" stroke=\"#%02x%02x%02x\" stroke-width=\"0.3\"/>\n", shade[0], shade[1],
                shade[2], shade[0], shade[1], shade[2]);
    }
    fputs("</svg>\n", out);
    close_figure(out, path);
    fem_free(p->title), fem_free(p->facets);
    fem_free(p);
}
