import { chmod, chown, copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** One file of an image that is built on this host; paths are relative to the image's root. */
export type ImageEntry =
  | { readonly kind: "directory"; readonly path: string; readonly mode: number; readonly owner?: number }
  | { readonly kind: "file"; readonly path: string; readonly text: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  /** `version` changes when the source does. */
  | {
      readonly kind: "copy";
      readonly path: string;
      readonly source: string;
      readonly mode: number;
      readonly version: string;
    };

/** Directories come before their content; unlisted parents get default permissions. */
export async function writeImageEntry(root: string, entry: ImageEntry): Promise<void> {
  const path = join(root, entry.path);
  await mkdir(dirname(path), { recursive: true });
  switch (entry.kind) {
    case "directory":
      await mkdir(path, { recursive: true });
      if (entry.owner !== undefined) await chown(path, entry.owner, entry.owner);
      // After chown, because the umask limits the mode of mkdir.
      await chmod(path, entry.mode);
      break;
    case "file":
      await writeFile(path, entry.text);
      await chmod(path, 0o644);
      break;
    case "link":
      await symlink(entry.target, path);
      break;
    case "copy":
      await copyFile(entry.source, path);
      await chmod(path, entry.mode);
      break;
  }
}
