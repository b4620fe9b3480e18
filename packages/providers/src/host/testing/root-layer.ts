import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { createWriteStream, existsSync, statSync } from "node:fs";
import { mkdir, readdir, readFile, realpath, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { type Header, type Pack, pack } from "tar-stream";
import { cacheDirectory } from "../cache-directory.ts";
import { findProgram } from "../find-program.ts";

const run = promisify(execFile);
const PATH = "/usr/bin:/bin:/usr/sbin:/sbin";

/** `tiny` has no bash; `git` and `python` add those to `base`. */
export type RootVariant = "tiny" | "base" | "git" | "python";

const TINY = ["sh", "cat", "echo", "id", "ls", "mkdir", "printf", "rm", "sleep", "true"];
const BASE = [
  ...TINY,
  ...["bash", "base64", "basename", "chgrp", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname", "du", "env"],
  ...["expr", "false", "find", "grep", "head", "hostname", "kill", "ln", "mkfifo", "mknod", "mktemp", "mount", "mv"],
  ...["nproc", "ps", "pwd", "readlink", "realpath", "sed", "seq", "setpriv", "sha256sum", "sort", "stat", "stty", "su"],
  ...["sync", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "truncate", "tty", "umount", "uname", "uniq"],
  ...["unshare", "wc", "whoami", "xargs", "yes", "ip", "awk"],
];
const PROGRAMS: Readonly<Record<RootVariant, readonly string[]>> = {
  tiny: TINY,
  base: BASE,
  git: [...BASE, "git", "/usr/lib/git-core/git-remote-http", "/usr/lib/git-core/git-remote-https"],
  python: [...BASE, "python3"],
};

/** Raise it when the same programs make another archive. */
const GENERATION = 2;
const USER = { uid: 1000, gid: 1000 };
const PASSWD = "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n";
const GROUP = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n";

/**
 * The path of an archive with a small root filesystem, built from the machine's own programs and libraries, because
 * tests have no registry. It is cached until the programs change.
 */
export async function rootLayer(variant: RootVariant): Promise<string> {
  const programs = await findPrograms(variant);
  const marks = [...programs.values(), "/etc/ld.so.cache"].filter((path) => existsSync(path)).map(mark);
  const key = createHash("sha256")
    .update(JSON.stringify([GENERATION, variant, marks]))
    .digest("hex")
    .slice(0, 16);
  const cache = join(cacheDirectory(), "test-images");
  const path = join(cache, `${variant}-${key}.tar`);
  if (existsSync(path)) return path;
  await mkdir(cache, { recursive: true });
  const staging = `${path}.${randomUUID()}`;
  const archive = pack();
  await Promise.all([pipeline(archive, createWriteStream(staging)), fill(archive, programs, variant)]);
  await rename(staging, path);
  return path;
}

function mark(path: string): readonly unknown[] {
  const { size, mtimeMs } = statSync(path);
  return [path, size, mtimeMs];
}

/** Target path → path on the host. */
async function findPrograms(variant: RootVariant): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const name of PROGRAMS[variant]) {
    const path = name.startsWith("/") ? name : findProgram(name, PATH);
    if (path !== undefined && existsSync(path))
      found.set(name.startsWith("/") ? name.slice(1) : `usr/bin/${name}`, path);
  }
  if (found.size < TINY.length) throw new Error(`this machine lacks programs for test images: ${TINY.join(", ")}`);
  return found;
}

async function fill(archive: Pack, programs: ReadonlyMap<string, string>, variant: RootVariant): Promise<void> {
  await skeleton(archive);
  const modules = variant === "python" ? await pythonLibrary() : [];
  // Modules of Python, such as that for TLS, have libraries of their own.
  const native = [...programs.values(), ...modules.filter((path) => path.endsWith(".so"))];
  const files = new Map([...programs, ...(await libraries(native))]);
  for (const path of modules) files.set(path.slice(1), path);
  const directories = new Set([...files.keys()].flatMap(parents));
  for (const name of [...directories].sort()) await add(archive, { name, type: "directory", mode: 0o755 });
  for (const [name, path] of files) await add(archive, { name, mode: 0o755 }, await readFile(path));
  archive.finalize();
}

async function skeleton(archive: Pack): Promise<void> {
  for (const name of ["dev", "etc", "home", "proc", "root", "run", "sys", "var"]) {
    await add(archive, { name, type: "directory", mode: 0o755 });
  }
  for (const name of ["tmp", "var/tmp"]) await add(archive, { name, type: "directory", mode: 0o1777 });
  await add(archive, { name: "home/user", type: "directory", mode: 0o755, ...USER });
  for (const name of ["bin", "sbin", "lib", "lib64"]) {
    const linkname = name === "sbin" ? "usr/bin" : `usr/${name}`;
    await add(archive, { name, type: "symlink", linkname });
  }
  await add(archive, { name: "etc/passwd", mode: 0o644 }, Buffer.from(PASSWD));
  await add(archive, { name: "etc/group", mode: 0o644 }, Buffer.from(GROUP));
}

/** Target path → path on the host, for all shared libraries. */
async function libraries(programs: readonly string[]): Promise<ReadonlyMap<string, string>> {
  // ldd fails for scripts among them.
  const { stdout } = await run("ldd", [...programs]).catch((error: { stdout: string }) => error);
  const paths = new Set(stdout.match(/\/\S+\.so[^\s:]*/g));
  return new Map([...paths].map((path) => [path.startsWith("/usr/") ? path.slice(1) : `usr${path}`, path]));
}

async function pythonLibrary(): Promise<string[]> {
  const [name = ""] = (
    await run("/usr/bin/python3", ["-c", "import os; print(os.path.dirname(os.__file__))"])
  ).stdout.split("\n");
  const directory = await realpath(name);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.(?:py|so)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(
      (path) =>
        !/\/(?:test|tests|lib2to3|idlelib|ensurepip|distutils|pydoc_data|dist-packages|config-[^/]*)\//.test(path),
    );
}

function parents(name: string): string[] {
  const parent = dirname(name);
  return parent === "." ? [] : [...parents(parent), parent];
}

function add(archive: Pack, header: Partial<Header> & { readonly name: string }, content?: Buffer): Promise<void> {
  // A fixed time, so that the same programs produce the same bytes.
  const entry = { mtime: new Date(0), ...header };
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null) => (error ? reject(error) : resolve());
    if (content === undefined) archive.entry(entry, done);
    else archive.entry({ ...entry, size: content.length }, content, done);
  });
}
