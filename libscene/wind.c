// Wind in scenes: its section, and what it does to the classes of a tree.
#include "libscene/internal.h"

#include <math.h>
#include <string.h>

// ---- in ------------------------------------------------------------------------------------------------------------

fem_status scene_read_wind(scene_reader *reader, const cJSON *environment, const raw_environment *raw, scene *s) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(environment, "wind");
    double       gravity = vec3_norm(s->gravity);
    if (!node) return FEM_OK;
    s->windy = true;
    s->wind = (solver_wind_options){.ground = raw->wind.ground,
                                    .speed = raw->wind.speed,
                                    .reference_height = raw->wind.reference_height,
                                    .roughness = raw->wind.roughness,
                                    .intensity = raw->wind.intensity,
                                    .length = raw->wind.length,
                                    .gust = raw->wind.gust,
                                    .gust_period = raw->wind.gust_period,
                                    .gust_duration = raw->wind.gust_duration,
                                    .density = raw->wind.density,
                                    .seed = (uint64_t)raw->wind.seed};
    memcpy(s->wind.direction, raw->wind.direction, sizeof s->wind.direction);
    for (int i = 0; i < 3; i++) {
        double upwards = gravity > 0 ? -s->gravity[i] / gravity : i == 2;
        s->wind.up[i] = isnan(raw->wind.up[0]) ? upwards : raw->wind.up[i];
    }
    size_t length = reader_enter(reader, "wind");
    if (s->method != SCENE_REDUCED)
        return reader_fail(reader, node,
                           "blows on reduced bodies only, expected \"solver\": {\"method\": \"reduced\"}");
    fem_status status = reader_prefix(reader, node, solver_wind_check_options(&s->wind));
    if (status == FEM_OK) reader_leave(reader, length);
    return status;
}

// ---- on a tree -----------------------------------------------------------------------------------------------------

// A step turns normals by at most so many radians, if it need not be taken in more parts than that.
static const double LONGEST_TURN = 2;
enum { MOST_PARTS = 64 };

struct scene_wind {
    solver_wind         *wind;
    solver_wind_load    *load;
    int                  count;
    solver_wind_surface *surfaces; // per class
};

void scene_wind_destroy(scene_wind *wind) {
    if (!wind) return;
    solver_wind_load_destroy(wind->load);
    for (int i = 0; wind->surfaces && i < wind->count; i++) solver_wind_surface_destroy(&wind->surfaces[i]);
    solver_wind_destroy(wind->wind);
    fem_free(wind->surfaces);
    fem_free(wind);
}

// A solid has two sides that the wind passes, whichever part of its surface is meant: both coefficients count half.
static fem_status make_surface(const scene_sail *sail, solver_wind_surface *surface) {
    fem_status        status = FEM_OK;
    int               count = sail->triangle_count, *all = NULL;
    const int        *triangles = sail->triangles;
    const scene_drag *drag = &sail->drag;
    *surface = (solver_wind_surface){.r = sail->basis ? sail->basis->r : 0};
    if (!sail->mesh || drag->samples == 0) return FEM_OK;
    if (!triangles) {
        FEM_TRY(fem_mesh_surface(sail->mesh, &count, &all, NULL));
        triangles = all;
    }
    if (count == 0) goto done;
    FEM_TRY(solver_wind_surface_create(surface, sail->mesh->vertex_count, sail->mesh->vertices, count, triangles,
                                       sail->basis->r, sail->basis->U, drag->samples, drag->normal, drag->tangential));
    surface->normal = drag->normal / 2;
    surface->tangential = drag->tangential / 2;
done:
    fem_free(all);
    return status;
}

fem_status scene_wind_create(scene_wind **created, const scene *s, int class_count, const scene_sail *sails,
                             int count) {
    fem_status  status = FEM_OK;
    scene_wind *wind = fem_calloc(1, sizeof *wind);
    if (!wind) return fem_fail(FEM_NO_MEMORY, "no memory for wind");
    wind->count = class_count;
    wind->surfaces = fem_calloc((size_t)class_count, sizeof *wind->surfaces);
    if (!wind->surfaces) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for wind on %d classes", class_count);
        goto done;
    }
    FEM_TRY(solver_wind_create(&wind->wind, &s->wind));
    for (int i = 0; i < class_count; i++) FEM_TRY(make_surface(&sails[i], &wind->surfaces[i]));
    FEM_TRY(solver_wind_load_create(&wind->load, wind->wind, class_count, wind->surfaces, count));
    *created = wind;
    wind = NULL;
done:
    scene_wind_destroy(wind);
    return status;
}

// Where normals turn too fast for the step (solver_wind_load_turning) it is taken in equal parts, with the wind of
// each. Loads that stand beside the wind's would have to be made anew for every part, so there it is not.
fem_status scene_wind_step(scene_wind *wind, solver_tree *tree, bool besides) {
    fem_status status = FEM_OK;
    double     h = solver_tree_time_step(tree);
    if (besides) {
        FEM_TRY(solver_wind_load_add(wind->load, tree));
        return solver_tree_step(tree);
    }
    FEM_TRY(solver_wind_load_apply(wind->load, tree));
    double parts = fmin(fmax(1, ceil(h * solver_wind_load_turning(wind->load) / LONGEST_TURN)), MOST_PARTS);
    for (int k = 0; k < (int)parts; k++) {
        if (parts > 1) {
            FEM_TRY(solver_tree_set_time_step(tree, h / parts));
            FEM_TRY(solver_wind_load_apply(wind->load, tree));
        }
        FEM_TRY(solver_tree_step(tree));
    }
done:
    if (solver_tree_set_time_step(tree, h) != FEM_OK && status == FEM_OK) status = FEM_BAD_INPUT;
    return status;
}
