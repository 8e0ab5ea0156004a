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
    if (result->rule_count > 0) app_json_array(json, "domains");
    for (int i = 0; i < result->rule_count; i++) {
        const scene_rule *rule = &result->rules[i];
        app_json_object(json, NULL);
        app_json_integer(json, "domain", rule->domain);
        app_json_integer(json, "elements", rule->training.elements);
        app_json_integer(json, "of", rule->elements);
        app_json_number(json, "error", rule->training.fit_error);
        if (part->training.held_out > 0) app_json_number(json, "held_out_error", rule->training.held_out_error);
        app_json_end(json);
    }
    if (result->rule_count > 0) app_json_end(json);
    app_json_end(json);
}

void app_print_cubature(FILE *out, const scene_part *part, const scene_result *result) {
    const cubature_training_report *t = &result->training;
    if (t->elements == 0) return;
    if (result->rule_count > 0) {
        fprintf(out, "%s cubature in %d domains: %d of %d elements, error %.2g%% at most",
                cubature_method_name(part->training.method), result->rule_count, t->elements, part->mesh.element_count,
                100 * t->fit_error);
        if (part->training.held_out > 0) fprintf(out, ", %.2g%% at held-out poses", 100 * t->held_out_error);
        fprintf(out, "; --json has each\n");
        return;
    }
    fprintf(out, "%s cubature: %d of %d elements, %d poses, error %.2g%%", cubature_method_name(part->training.method),
            t->elements, part->mesh.element_count, t->poses, 100 * t->fit_error);
    if (part->training.held_out > 0) fprintf(out, ", %.2g%% at held-out poses", 100 * t->held_out_error);
    fprintf(out, "\n");
}
