// Curves as SVG: axes with five marks each, a line and a name for every curve.
#include "libscene/curves.h"

#include <math.h>

enum { WIDTH = 640, HEIGHT = 400, LEFT = 70, RIGHT = 150, TOP = 40, BOTTOM = 50, MARKS = 5 };

static double across(double x, double low, double high) {
    double t = high > low ? (x - low) / (high - low) : 0.5;
    return LEFT + fmin(1, fmax(0, t)) * (WIDTH - LEFT - RIGHT);
}

static double upwards(double y, double low, double high) {
    double t = high > low ? (y - low) / (high - low) : 0.5;
    return HEIGHT - BOTTOM - fmin(1, fmax(0, t)) * (HEIGHT - TOP - BOTTOM);
}

static void print_axes(fem_file *file, const char *title, const char *x_label, const char *y_label, double x0,
                       double x1, double y0, double y1) {
    fem_file_print(file,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
                   "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                   WIDTH, HEIGHT);
    fem_file_print(file, "<text x=\"%d\" y=\"22\" font-size=\"14\">%s</text>\n", LEFT, title);
    for (int k = 0; k < MARKS; k++) {
        double t = (double)k / (MARKS - 1), x = x0 + t * (x1 - x0), y = y0 + t * (y1 - y0);
        fem_file_print(file, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT,
                       upwards(y, y0, y1), WIDTH - RIGHT, upwards(y, y0, y1));
        fem_file_print(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", LEFT - 6,
                       upwards(y, y0, y1) + 4, y);
        fem_file_print(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n", across(x, x0, x1),
                       HEIGHT - BOTTOM + 18, x);
    }
    fem_file_print(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", (LEFT + WIDTH - RIGHT) / 2,
                   HEIGHT - 12, x_label);
    fem_file_print(file, "<text transform=\"translate(18,%d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
                   (TOP + HEIGHT - BOTTOM) / 2, y_label);
}

fem_status scene_curves_write(const char *path, const char *title, const char *x_label, const char *y_label, int count,
                              const double *x, double low, double high, int curves, const scene_curve *list) {
    static const char *const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#7f7f7f", "#ff7f0e"};
    fem_status               status = FEM_OK;
    fem_file                *file = NULL;
    double                   x0 = count > 0 ? x[0] : 0, x1 = count > 0 ? x[count - 1] : 1;
    FEM_TRY(fem_file_create(&file, path));
    print_axes(file, title, x_label, y_label, x0, x1, low, high);
    for (int c = 0; c < curves; c++) {
        const char *colour = colours[(size_t)c % (sizeof colours / sizeof *colours)];
        fem_file_print(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour);
        for (int i = 0; i < count; i++)
            if (isfinite(list[c].y[i]))
                fem_file_print(file, "%.1f,%.1f ", across(x[i], x0, x1), upwards(list[c].y[i], low, high));
        fem_file_print(file, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", WIDTH - RIGHT + 10,
                       TOP + 16 * (c + 1), colour, list[c].name);
    }
    fem_file_print(file, "</svg>\n");
    FEM_TRY(fem_file_commit(file));
done:
    return status;
}
