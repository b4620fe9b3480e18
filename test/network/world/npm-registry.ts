import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { run } from "../../../bench/run.ts";

interface Package {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

const REGISTRY = "https://registry.npmjs.org";
const VERSION = "1.0.0";
/** The first one needs the others, one of them through another. */
const packages: readonly Package[] = [
  { name: "tern", dependencies: { plover: "^1.0.0" } },
  { name: "plover", dependencies: { dunlin: "1.0.0" } },
  { name: "dunlin", dependencies: {} },
];

/** A registry of npm packages, under the name of the public one. */
export class NpmRegistry {
  readonly #tarballs: ReadonlyMap<string, Buffer>;

  private constructor(tarballs: ReadonlyMap<string, Buffer>) {
    this.#tarballs = tarballs;
  }

  static async build(directory: string): Promise<NpmRegistry> {
    const tarballs = await Promise.all(packages.map((one) => buildTarball(directory, one)));
    return new NpmRegistry(new Map(tarballs));
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? "/").slice(1);
    const tarball = this.#tarballs.get(/^([^/]+)\/-\//.exec(path)?.[1] ?? "");
    const found = packages.find(({ name }) => name === path);
    response.statusCode = tarball === undefined && found === undefined ? 404 : 200;
    if (tarball !== undefined) response.end(tarball);
    else response.end(JSON.stringify(found === undefined ? { error: "not found" } : this.#document(found)));
  }

  /** A lock file for a program that needs the first package. */
  lockFile(): string {
    const locked = packages.map(({ name, dependencies }) => {
      const { tarball: resolved, integrity } = this.#distribution(name);
      return [`node_modules/${name}`, { version: VERSION, resolved, integrity, dependencies }] as const;
    });
    const program = { name: "program", version: VERSION };
    const root = { ...program, dependencies: { tern: VERSION } };
    return JSON.stringify({ ...program, lockfileVersion: 3, packages: { "": root, ...Object.fromEntries(locked) } });
  }

  #document({ name, dependencies }: Package): object {
    const version = { name, version: VERSION, dependencies, dist: this.#distribution(name) };
    return { name, "dist-tags": { latest: VERSION }, versions: { [VERSION]: version } };
  }

  #distribution(name: string): { tarball: string; integrity: string } {
    const bytes = this.#tarballs.get(name) ?? Buffer.alloc(0);
    const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
    return { tarball: `${REGISTRY}/${name}/-/${name}-${VERSION}.tgz`, integrity };
  }
}

async function buildTarball(directory: string, { name, dependencies }: Package): Promise<[string, Buffer]> {
  const tree = join(directory, name);
  await mkdir(join(tree, "package"), { recursive: true });
  const manifest = { name, version: VERSION, main: "main.js", dependencies };
  await writeFile(join(tree, "package/package.json"), JSON.stringify(manifest));
  await writeFile(join(tree, "package/main.js"), `module.exports = "${name} ${VERSION}";\n`);
  const file = join(directory, `${name}.tgz`);
  await run("tar", ["-czf", file, "-C", tree, "package"]);
  return [name, await readFile(file)];
}
