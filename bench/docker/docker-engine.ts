import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { run } from "../run.ts";

/** Where Docker's programs are, and the environment they need. */
export interface DockerEngine {
  readonly docker: string;
  readonly dockerd: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * The machine's own dockerd, or Debian's docker.io unpacked into the cache. Unpacked, not installed: an installation
 * would start a system-wide daemon on the user's machine for the sake of a benchmark.
 */
export async function findDockerEngine(signal: AbortSignal): Promise<DockerEngine> {
  const systemPath = (process.env["PATH"] ?? "").split(delimiter).concat("/usr/sbin", "/usr/bin", "/sbin");
  const installed = systemPath.find((dir) => existsSync(join(dir, "dockerd")));
  if (installed !== undefined) return engineAt(installed, [installed, "/usr/bin"], process.env);
  const root = join(cacheDir(), "docker.io");
  if (!existsSync(root)) await unpackDebianPackages(root, signal);
  const binaries = [join(root, "usr/sbin"), join(root, "usr/bin")];
  const libraries = (await readdir(join(root, "usr/lib"))).map((name) => join(root, "usr/lib", name));
  return engineAt(join(root, "usr/sbin"), binaries, {
    ...process.env,
    PATH: [...binaries, ...systemPath].join(delimiter),
    LD_LIBRARY_PATH: libraries.join(delimiter),
  });
}

function engineAt(daemonDir: string, clientDirs: readonly string[], env: NodeJS.ProcessEnv): DockerEngine {
  const client = clientDirs.find((dir) => existsSync(join(dir, "docker")));
  if (client === undefined) {
    throw new Error(
      `found ${daemonDir}/dockerd but no docker client in ${clientDirs.join(", ")}; install docker.io whole`,
    );
  }
  return { docker: join(client, "docker"), dockerd: join(daemonDir, "dockerd"), env };
}

function cacheDir(): string {
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "sandpiper", "bench");
}

async function unpackDebianPackages(root: string, signal: AbortSignal): Promise<void> {
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) {
    throw new Error(
      "dockerd is not installed; install Docker Engine (on Debian: apt-get install docker.io), or run as root on Debian",
    );
  }
  process.stderr.write(
    `  docker: downloading Debian's docker.io and unpacking it into ${root} (once, nothing is installed)\n`,
  );
  const staging = `${root}.part`;
  await rm(staging, { recursive: true, force: true });
  const archives = join(staging, "archives");
  await mkdir(join(archives, "partial"), { recursive: true });
  const download = [
    "install",
    "--download-only",
    "--yes",
    "--no-install-recommends",
    "-o",
    `Dir::Cache::archives=${archives}`,
  ];
  await run("apt-get", [...download, "docker.io"], { signal }).catch(async () => {
    await run("apt-get", ["update"], { signal });
    await run("apt-get", [...download, "docker.io"], { signal });
  });
  for (const file of await readdir(archives)) {
    if (file.endsWith(".deb"))
      await run("dpkg-deb", ["--extract", join(archives, file), join(staging, "root")], { signal });
  }
  await mkdir(dirname(root), { recursive: true });
  await rename(join(staging, "root"), root);
  await rm(staging, { recursive: true, force: true });
}
