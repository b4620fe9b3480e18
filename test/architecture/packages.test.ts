import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { readSourceFiles, repoDirectory } from "./source-files.ts";

const versions = z.record(z.string(), z.string()).default({});
const manifestSchema = z.object({
  name: z.string(),
  version: z.string(),
  private: z.literal(true),
  license: z.literal("Apache-2.0"),
  exports: versions,
  bin: versions,
  dependencies: versions,
  devDependencies: versions,
  optionalDependencies: versions,
});

const files = readSourceFiles();
const manifests = files
  .filter(({ path }) => /(^|\/)package\.json$/.test(path))
  .map(({ path, text }) => ({ path, ...manifestSchema.parse(JSON.parse(text)) }));
const workspaces = manifests.filter(({ path }) => path !== "package.json");

describe.each(manifests)("$path", ({ dependencies, devDependencies, optionalDependencies }) => {
  it("names exact versions", () => {
    const all = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
    expect(all.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});

describe("agent/Cargo.toml", () => {
  it("names exact versions", () => {
    const text = files.find(({ path }) => path === "agent/Cargo.toml")?.text ?? "";
    const sections = text.split(/^\[/m).filter((section) => /^([a-z-]+\.)*(dev-|build-)?dependencies/.test(section));
    const requirements = sections.flatMap((section) =>
      [...section.matchAll(/^[\w-]+ = (.*)$/gm)].map(([line]) => line),
    );
    expect(requirements).not.toEqual([]);
    expect(requirements.filter((line) => !/"=\d+\.\d+\.\d+"/.test(line))).toEqual([]);
  });
});

describe.each(workspaces)("the public surface of $name", ({ path, exports, bin, version }) => {
  const targets = [...Object.values(exports), ...Object.values(bin)].map((target) => join(dirname(path), target));

  it("has the version of the whole", () => {
    expect(version).toBe(manifests.find((manifest) => manifest.path === "package.json")?.version);
  });

  it("is there", () => {
    expect(targets).not.toEqual([]);
    expect(targets.filter((target) => !existsSync(join(repoDirectory, target)))).toEqual([]);
  });

  it("is a list of names written by hand", () => {
    const roots = files.filter((file) => targets.includes(file.path) && file.path.endsWith("/index.ts"));
    for (const root of roots) {
      expect(root.text, root.path).toMatch(
        /^(\s*(\/\/.*|\/\*[\s\S]*?\*\/|export (type )?\{[^}]*\} from "[^"]+";))*\s*$/,
      );
    }
  });
});
