import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { run } from "../../../bench/run.ts";

/** The package that tests install; it needs the second one. */
const packages = [
  { name: "tern", depends: ["Depends: plover (>= 1.0)"], program: "echo tern calls; plover" },
  { name: "plover", depends: [], program: "echo plover answers" },
] as const;

/** A flat Debian archive at http://deb.debian.org/tests/, without signatures: `deb [trusted=yes] … ./`. */
export class DebianArchive {
  readonly #files: ReadonlyMap<string, Buffer>;

  private constructor(files: ReadonlyMap<string, Buffer>) {
    this.#files = files;
  }

  static async build(directory: string): Promise<DebianArchive> {
    const built = await Promise.all(packages.map((one) => buildPackage(directory, one)));
    const index = built.map(({ file, bytes, control }) => {
      const hash = createHash("sha256").update(bytes).digest("hex");
      return `${control}Filename: ./${file}\nSize: ${bytes.length}\nSHA256: ${hash}\n`;
    });
    const packagesFile = Buffer.from(index.join("\n"));
    const indexHash = createHash("sha256").update(packagesFile).digest("hex");
    const release = `Date: ${new Date().toUTCString()}\nSHA256:\n ${indexHash} ${packagesFile.length} Packages\n`;
    const files = built.map(({ file, bytes }) => [file, bytes] as const);
    return new DebianArchive(new Map([...files, ["Packages", packagesFile], ["Release", Buffer.from(release)]]));
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    const file = this.#files.get((request.url ?? "").replace(/^\/tests\/(\.\/)?/, ""));
    response.statusCode = file === undefined ? 404 : 200;
    response.end(file);
  }
}

async function buildPackage(
  directory: string,
  { name, depends, program }: (typeof packages)[number],
): Promise<{ file: string; bytes: Buffer; control: string }> {
  const tree = join(directory, name);
  const fields = ["Version: 1.0", "Architecture: all", "Maintainer: tests <tests@site.example>", ...depends];
  const control = `${[`Package: ${name}`, ...fields, "Description: a package of tests"].join("\n")}\n`;
  await mkdir(join(tree, "DEBIAN"), { recursive: true });
  await mkdir(join(tree, "opt/birds"), { recursive: true });
  await writeFile(join(tree, "DEBIAN/control"), control);
  await writeFile(join(tree, `opt/birds/${name}`), `#!/bin/sh\nPATH=$PATH:/opt/birds\n${program}\n`, { mode: 0o755 });
  const file = `${name}_1.0_all.deb`;
  await run("dpkg-deb", ["--build", "--root-owner-group", "-Zgzip", tree, join(directory, file)]);
  return { file, bytes: await readFile(join(directory, file)), control };
}
