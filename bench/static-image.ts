import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { guestPrograms } from "./guest-programs.ts";
import type { Workspace } from "./workspace.ts";

/** Writes the static programs of docker's image into a directory, as a sandbox's root filesystem. */
export async function makeStaticImage(workspace: Workspace, directory: string): Promise<void> {
  const programs = await guestPrograms(workspace);
  for (const name of ["bin", "tmp", "home/user"]) await mkdir(join(directory, name), { recursive: true });
  for (const name of ["true", "say"] as const) await copyFile(programs[name], join(directory, "bin", name));
}
