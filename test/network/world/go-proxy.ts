import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { run } from "../../../bench/run.ts";

const VERSION = "v1.0.0";
/** The first one needs the second. */
const modules = [
  { path: "birds.example/tern", requires: ["birds.example/plover"] },
  { path: "birds.example/plover", requires: [] },
] as const;

/** A proxy of Go modules, under the name of the public one. */
export class GoProxy {
  readonly #files: ReadonlyMap<string, Buffer | string>;

  private constructor(files: ReadonlyMap<string, Buffer | string>) {
    this.#files = files;
  }

  static async build(directory: string): Promise<GoProxy> {
    const files = new Map<string, Buffer | string>();
    for (const { path, requires } of modules) {
      const goMod = [`module ${path}`, ...requires.map((one) => `require ${one} ${VERSION}`), ""].join("\n");
      const root = `${path}@${VERSION}`;
      await mkdir(join(directory, root), { recursive: true });
      await writeFile(join(directory, root, "go.mod"), goMod);
      await writeFile(join(directory, root, "bird.go"), `package ${path.split("/").at(-1)}\n`);
      const archive = join(directory, `${path.replace("/", "-")}.zip`);
      // Go refuses archives with entries for directories.
      const entries = [`${root}/go.mod`, `${root}/bird.go`].map((name) => `z.write(${JSON.stringify(name)})`);
      const script = `import zipfile; z = zipfile.ZipFile(${JSON.stringify(archive)}, "w"); ${entries.join("; ")}; z.close()`;
      await run("/usr/bin/python3", ["-c", script], { cwd: directory });
      const at = `/${path}/@v/${VERSION}`;
      files.set(`${at}.info`, JSON.stringify({ Version: VERSION, Time: "2026-01-01T00:00:00Z" }));
      files.set(`${at}.mod`, goMod);
      files.set(`${at}.zip`, await readFile(archive));
    }
    return new GoProxy(files);
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    const file = this.#files.get(request.url ?? "");
    response.statusCode = file === undefined ? 404 : 200;
    response.end(file ?? "not found");
  }
}
