// How the commands show the cubature of a part.
#include "app/app.h"

void app_put_cubature(app_json *json, const scene_part *part, const scene_result *result) {
    const cubature_training_report *t = &result->training;
    if (t->elements == 0) return;
    app_json_object(json, "cubature");
    app_json_text(json, "method", cubature_method_name(part->training.method));
    app_json_integer(json, "elements", t->elements);
    app_json_integer(json, "poses", t->poses);
    app_json_number(json, "error", t->fit_error);
    app_json_bool(json, "reached", t->reached);
    if (part->training.held_out > 0) app_json_number(json, "held_out_error", t->held_out_error);
    app_json_end(json);
}

void app_print_cubature(FILE *out, const scene_part *part, const scene_result *result) {
    const cubature_training_report *t = &result->training;
    if (t->elements == 0) return;
    fprintf(out, "%s cubature: %d of %d elements, %d poses, error %.2g%%", cubature_method_name(part->training.method),
            t->elements, part->mesh.element_count, t->poses, 100 * t->fit_error);
    if (part->training.held_out > 0) fprintf(out, ", %.2g%% at held-out poses", 100 * t->held_out_error);
    fprintf(out, "\n");
}
