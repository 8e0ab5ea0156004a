// ParaView's collection file: which files belong to which time.
#include "libscene/scene.h"

static void put_escaped(fem_file *file, const char *text) {
    for (const char *c = text; *c; c++) {
        const char *entity = *c == '&'   ? "&amp;"
                             : *c == '<' ? "&lt;"
                             : *c == '>' ? "&gt;"
                             : *c == '"' ? "&quot;"
                                         : NULL;
        if (entity)
            fem_file_print(file, "%s", entity);
        else
            fem_file_put(file, c, 1);
    }
}

fem_status scene_pvd_write(const char *path, int count, const double *times, const char *const *files) {
    fem_file  *file = NULL;
    fem_status status = fem_file_create(&file, path);
    if (status != FEM_OK) return status;
    fem_file_print(
        file, "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\" byte_order=\"LittleEndian\">\n"
              "  <Collection>\n");
    for (int i = 0; i < count; i++) {
        fem_file_print(file, "    <DataSet timestep=\"%.12g\" group=\"\" part=\"0\" file=\"", times[i]);
        put_escaped(file, files[i]);
        fem_file_print(file, "\"/>\n");
    }
    fem_file_print(file, "  </Collection>\n</VTKFile>\n");
    return fem_file_commit(file);
}
