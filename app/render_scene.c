// The .glb of a scene for `limber render`: the scene is run into a temporary folder, which is gone when the model is
// read.
#include "app/app.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void remove_folder(const char *path) {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder) closedir(folder);
    rmdir(path);
}

static fem_status make_folder(char *path, size_t size) {
    const char *parent = getenv("TMPDIR");
    int         length = snprintf(path, size, "%s/limber-render-XXXXXX", parent && *parent ? parent : "/tmp");
    if (length < 0 || (size_t)length >= size) return fem_fail(FEM_IO, "TMPDIR: is too long");
    if (!mkdtemp(path)) return fem_fail(FEM_IO, "%s: cannot make the folder: %s", path, strerror(errno));
    return FEM_OK;
}

fem_status app_model_of_scene(scene_model **model, const char *path, const app_list *overrides, bool quiet,
                              bool *loaded) {
    enum { MOST = sizeof overrides->items / sizeof *overrides->items };
    fem_status   status = FEM_OK;
    scene       *s = NULL;
    scene_result result = {0};
    app_progress progress = {0};
    char         folder[1024] = "", cache[512], glb[2048];
    const char  *all[MOST + 1];
    for (int i = 0; i < overrides->count; i++) all[i] = overrides->items[i];
    all[overrides->count] = "output.formats=[\"glb\"]";
    FEM_TRY(scene_load(&s, path, overrides->count + 1, all));
    *loaded = true;
    if (!quiet) app_note_remarks(&s->remarks);
    FEM_TRY(scene_set_cache(s, app_cache_folder(NULL, cache, sizeof cache)));
    FEM_TRY(make_folder(folder, sizeof folder));
    app_progress_begin(&progress, quiet, s->method != SCENE_STATIC ? "simulating" : NULL, s->frames - 1);
    FEM_TRY(scene_run(s, folder, 0, &progress.callback, &result));
    snprintf(glb, sizeof glb, "%s/%s.glb", folder, s->name);
    FEM_TRY(scene_model_read(model, glb));
done:
    app_progress_end(&progress);
    if (folder[0]) remove_folder(folder);
    scene_result_destroy(&result); // its notes are about files that are gone
    scene_destroy(s);
    return status;
}
