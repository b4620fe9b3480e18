import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { guestPrograms } from "../guest-programs.ts";
import { run } from "../run.ts";
import { oncePerRun, type Workspace } from "../workspace.ts";
import { DockerDaemon } from "./docker-daemon.ts";

/** Holds static programs. */
export const IMAGE = "spbench:latest";
/** Keeps a container running: waits for input that never comes. */
export const WAIT = ["/bin/floor", "/bin/true"];

/** One daemon with the image, shared by all benchmarks of a run. */
export const benchDaemon = oncePerRun(start);

async function start(workspace: Workspace): Promise<DockerDaemon> {
  const daemon = workspace.own(await DockerDaemon.start(workspace));
  const programs = await guestPrograms(workspace);
  const root = await workspace.makeDir("docker", "image");
  for (const dir of ["bin", "tmp"]) await mkdir(join(root, dir), { recursive: true });
  for (const name of ["true", "say", "floor"] as const) await copyFile(programs[name], join(root, "bin", name));
  const tarball = `${root}.tar`;
  await run("tar", ["--create", "--file", tarball, "--directory", root, "."]);
  await daemon.run(["import", tarball, IMAGE]);
  const version = await daemon.run(["version", "--format", "{{.Server.Version}}"]);
  workspace.versions["docker"] = version.stdout.trim();
  return daemon;
}
