// `limber mesh`: a volumetric mesh from a surface.
#include "app/app.h"

#include <math.h>
#include <string.h>

typedef struct meshing {
    const char        *in, *out, *embed;
    fem_mesher_options options;
    bool               as_json;
    bool               writing; // a failure now is one of the output
    int                exit_code;
} meshing;

static void print_json(const meshing *m, const fem_mesh *mesh, const fem_quality *q, const fem_mesher_report *r,
                       const fem_embedding *embedding, const fem_remarks *remarks, double seconds, int *exit_code) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_text(&json, "file", m->out);
    app_json_integer(&json, "vertices", mesh->vertex_count);
    app_json_integer(&json, "elements", mesh->element_count);
    app_json_text(&json, "element", mesh->type == FEM_T4 ? "T4" : "H8");
    app_json_number(&json, "size", m->options.size);
    app_json_number(&json, "volume", q->volume);
    app_json_number(&json, "min_dihedral", q->min_dihedral);
    app_json_number(&json, "max_dihedral", q->max_dihedral);
    app_json_integer(&json, "components", q->components);
    app_json_object(&json, "surface");
    app_json_number(&json, "area", r->area);
    app_json_number(&json, "volume", r->volume);
    app_json_integer(&json, "open_edges", r->open_edges);
    app_json_integer(&json, "doubled", r->doubled);
    app_json_integer(&json, "degenerate", r->degenerate);
    app_json_bool(&json, "turned", r->turned);
    app_json_end(&json);
    app_json_object(&json, "distance");
    app_json_number(&json, "surface_to_mesh", r->to_mesh);
    app_json_number(&json, "mesh_to_surface", r->to_surface);
    app_json_number(&json, "mean", r->mean_to_mesh);
    app_json_number(&json, "lost_area", r->lost_area);
    app_json_array(&json, "lost");
    for (int i = 0; i < r->place_count; i++) {
        app_json_object(&json, NULL);
        app_json_numbers(&json, "at", 3, r->places[i]);
        app_json_number(&json, "distance", r->place_distance[i]);
        app_json_end(&json);
    }
    app_json_end(&json);
    app_json_end(&json);
    app_json_integer(&json, "crumbs", r->crumbs);
    app_json_integer(&json, "hinged_parts", r->hinged_parts);
    app_json_integer(&json, "pinches", r->pinches);
    app_json_integer(&json, "filled", r->filled);
    if (m->embed) app_json_integer(&json, "embedded_outside", embedding->outside);
    app_json_object(&json, "seconds");
    app_json_number(&json, "signs", r->seconds_signs);
    app_json_number(&json, "elements", r->seconds_elements);
    app_json_number(&json, "distance", r->seconds_distance);
    app_json_number(&json, "all", seconds);
    app_json_end(&json);
    app_json_remarks(&json, remarks);
    *exit_code = app_json_finish(&json);
}

static void print_text(const meshing *m, const fem_mesh *mesh, const fem_quality *q, const fem_mesher_report *r,
                       const fem_remarks *remarks, double seconds) {
    printf("%s: %d vertices, %d %s elements, %.2f s\n", m->out, mesh->vertex_count, mesh->element_count,
           mesh->type == FEM_T4 ? "T4" : "H8", seconds);
    printf("dihedral angles  %.2f .. %.2f degrees\n", q->min_dihedral, q->max_dihedral);
    printf("volume           %.6g, of the surface %.6g\n", q->volume, r->volume);
    printf("distance         %.3g sizes from the surface at most, %.3g on average; %.3g back\n",
           r->to_mesh / m->options.size, r->mean_to_mesh / m->options.size, r->to_surface / m->options.size);
    if (q->components > 1) printf("components       %d\n", q->components);
    app_note_remarks(remarks);
}

static fem_status make_mesh(meshing *m) {
    fem_status        status = FEM_OK;
    fem_surface       surface = {0};
    fem_mesh          mesh = {0};
    fem_embedding     embedding = {0};
    fem_remarks       remarks = {0};
    fem_mesher_report report = {0};
    fem_quality       quality = {0};
    m->writing = true; // nobody waits for what cannot be written, and no output replaces a file when another cannot
    FEM_TRY(fem_file_try(m->out));
    if (m->embed) FEM_TRY(fem_file_try(m->embed));
    m->writing = false;
    FEM_TRY(fem_surface_read_remarks(&surface, m->in, &remarks));
    double begin = fem_seconds();
    status = fem_mesh_fill_surface(&mesh, &surface, &m->options, &report, &remarks);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", m->in);
        goto done;
    }
    double seconds = fem_seconds() - begin;
    FEM_TRY(fem_mesh_quality(&mesh, &quality));
    if (m->embed) FEM_TRY(fem_embed_points(&embedding, &mesh, surface.vertex_count, surface.vertices));
    m->writing = true;
    FEM_TRY(fem_mesh_write(&mesh, m->out));
    if (m->embed) FEM_TRY(fem_embedding_write(&embedding, m->embed));
    if (m->as_json)
        print_json(m, &mesh, &quality, &report, &embedding, &remarks, seconds, &m->exit_code);
    else
        print_text(m, &mesh, &quality, &report, &remarks, seconds);
done:
    fem_remarks_destroy(&remarks);
    fem_embedding_destroy(&embedding);
    fem_mesh_destroy(&mesh);
    fem_surface_destroy(&surface);
    return status;
}

// Without a size: what sizes would make.
static int ask_for_size(const meshing *m) {
    fem_surface        surface = {0};
    fem_mesher_options options = m->options;
    if (fem_surface_read(&surface, m->in) != FEM_OK) return app_fail(FEM_BAD_INPUT);
    options.size = 1;
    double unit = fem_mesher_estimate(&surface, &options);
    fem_surface_destroy(&surface);
    if (!(unit > 0)) return app_usage_error(&command_mesh, "--size is missing");
    return app_usage_error(&command_mesh, "--size is missing: %.2g makes about 1000 elements, %.2g about 100000",
                           cbrt(unit / 1e3), cbrt(unit / 1e5));
}

static int run(int argc, char **argv) {
    meshing     m = {.options = {.method = FEM_STUFFING, .type = FEM_T4, .size = NAN}};
    const char *method = NULL;
    bool        hexahedra = false;
    app_words   words = {0};
    int         exit_code, threads = 0;
    app_option  options[] = {
         {"--output", "-o", APP_TEXT, &m.out, 0, 0, "MESH", "the new file; its ending chooses the format"},
         {"--size", "-s", APP_NUMBER, &m.options.size, 0, 0, "H", "length of the elements"},
         {"--method", NULL, APP_TEXT, &method, 0, 0, "NAME",
          "stuffing (the default): follows the surface; voxel: cubes, stepped"},
         {"--hex", NULL, APP_FLAG, &hexahedra, 0, 0, NULL, "hexahedra; implies --method voxel"},
         {"--embed", NULL, APP_TEXT, &m.embed, 0, 0, "FILE",
          "also write where the surface's vertices are in the mesh, as Vega's .interp"},
         {"--threads", NULL, APP_INT, &threads, 1, 256, "N", "number of threads (default: one per core)"},
         {"--json", NULL, APP_FLAG, &m.as_json, 0, 0, NULL, "print the report as JSON"},
    };
    if (!app_parse(&command_mesh, argc, argv, (int)(sizeof options / sizeof *options), options, 1, 1, &words,
                   &exit_code))
        return exit_code;
    m.in = words.items[0];
    if (method && strcmp(method, "voxel") != 0 && strcmp(method, "stuffing") != 0)
        return app_usage_error(&command_mesh, "--method is \"%s\", expected stuffing or voxel", method);
    if (hexahedra && method && strcmp(method, "stuffing") == 0)
        return app_usage_error(&command_mesh, "--hex needs --method voxel: stuffing makes tetrahedra");
    if (hexahedra || (method && strcmp(method, "voxel") == 0)) m.options.method = FEM_VOXELS;
    if (hexahedra) m.options.type = FEM_H8;
    if (!fem_path_is_surface(m.in))
        return app_usage_error(&command_mesh, "%s is no surface, expected .obj, .stl or .ply (or these with .gz)",
                               m.in);
    if (!m.out) return app_usage_error(&command_mesh, "-o MESH is missing: the file to be written");
    if (fem_path_is_surface(m.out))
        return app_usage_error(
            &command_mesh, "%s would be a surface, expected a mesh: .veg, .node, .ele, .vtu, .vtk, .msh, .mesh or .inp",
            m.out);
    if (isnan(m.options.size)) return ask_for_size(&m);
    if (!(m.options.size > 0)) return app_usage_error(&command_mesh, "--size is %g, expected > 0", m.options.size);
    fem_set_threads(threads);
    fem_status status = make_mesh(&m);
    if (status != FEM_OK) return m.writing ? app_fail_output(status) : app_fail(status);
    return m.exit_code;
}

const app_command command_mesh = {
    .name = "mesh",
    .summary = "Fill a surface with tetrahedra or cubes",
    .usage = "SURFACE -o MESH --size H [OPTIONS]",
    .example = "limber mesh bunny.obj -o bunny.veg --size 0.05",
    .run = run,
    .details =
        "SURFACE is .obj, .stl or .ply. It need not be closed: the inside is where the winding number is above a\n"
        "half, and remarks say what was wrong. Dihedral angles of stuffing lie between 10.7 and 164.8 degrees.\n"
        "Parts thinner than about H are lost; the report says where.\n",
};
