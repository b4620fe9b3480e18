import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { run } from "../../../bench/run.ts";
import { hostOf } from "./http-site.ts";

interface Distribution {
  readonly project: string;
  readonly requires: readonly string[];
}

const VERSION = "1.0.0";
/** The first one needs the others, one of them through another. */
const distributions: readonly Distribution[] = [
  { project: "tern", requires: ["plover>=1.0", "dunlin"] },
  { project: "plover", requires: ["dunlin==1.0.0"] },
  { project: "dunlin", requires: [] },
];

/** A package index with wheels, under the names of the public one: pages at pypi.org, files at files.pythonhosted.org. */
export class PythonIndex {
  readonly #wheels: ReadonlyMap<string, Buffer>;

  private constructor(wheels: ReadonlyMap<string, Buffer>) {
    this.#wheels = wheels;
  }

  static async build(directory: string): Promise<PythonIndex> {
    const wheels = await Promise.all(distributions.map((distribution) => buildWheel(directory, distribution)));
    return new PythonIndex(new Map(wheels));
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? "/";
    if (hostOf(request) === "files.pythonhosted.org") {
      const wheel = this.#wheels.get(path.split("/").at(-1) ?? "");
      response.statusCode = wheel === undefined ? 404 : 200;
      response.end(wheel);
      return;
    }
    const project = /^\/simple\/([^/]+)\/$/.exec(path)?.[1];
    const files = [...this.#wheels].filter(([name]) => name.startsWith(`${project}-`));
    const links = files.map(([name, bytes]) => {
      const hash = createHash("sha256").update(bytes).digest("hex");
      return `<a href="https://files.pythonhosted.org/packages/${name}#sha256=${hash}">${name}</a>`;
    });
    response.statusCode = files.length === 0 ? 404 : 200;
    response.setHeader("content-type", "text/html");
    response.end(`<!DOCTYPE html><html><body>${links.join("\n")}</body></html>`);
  }
}

async function buildWheel(directory: string, { project, requires }: Distribution): Promise<[string, Buffer]> {
  const tree = join(directory, project);
  const metadata = `${project}-${VERSION}.dist-info`;
  const files: Readonly<Record<string, string>> = {
    [`${project}/__init__.py`]: `version = "${VERSION}"\n`,
    [`${metadata}/METADATA`]: [
      "Metadata-Version: 2.1",
      `Name: ${project}`,
      `Version: ${VERSION}`,
      ...requires.map((one) => `Requires-Dist: ${one}`),
      "",
    ].join("\n"),
    [`${metadata}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${metadata}/RECORD`]: "",
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(tree, path)), { recursive: true });
    await writeFile(join(tree, path), text);
  }
  const name = `${project}-${VERSION}-py3-none-any.whl`;
  const file = join(directory, name);
  await run("/usr/bin/python3", ["-m", "zipfile", "-c", file, project, metadata], { cwd: tree });
  return [name, await readFile(file)];
}
