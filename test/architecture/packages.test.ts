import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readSourceFiles, repoDirectory } from "./source-files.ts";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly license?: string;
  readonly description?: string;
  readonly engines?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const files = readSourceFiles();
const manifests = files
  .filter(({ path }) => /(^|\/)package\.json$/.test(path))
  .map(({ path, text }) => ({ path, ...(JSON.parse(text) as Manifest) }));
const workspaces = manifests.filter(({ path }) => path !== "package.json");

describe.each(manifests)("$path", ({ license, dependencies, devDependencies, optionalDependencies, ...manifest }) => {
  it("is private and has the repository's license", () => {
    expect([manifest.private, license]).toEqual([true, "Apache-2.0"]);
  });

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

describe.each(workspaces)("package $name", ({ path, description, engines, exports = {}, bin = {}, version }) => {
  const targets = [...Object.values(exports), ...Object.values(bin)].map((target) => join(dirname(path), target));

  it("states its purpose and the Node.js version that it needs", () => {
    expect(description).toMatch(/\S/);
    expect(engines?.["node"]).toMatch(/^>=\d+$/);
  });

  it("has a README of at most 40 lines with an example", () => {
    const readme = files.find((file) => file.path === join(dirname(path), "README.md"))?.text ?? "";
    expect(readme).toMatch(/^```(ts|sh)$/m);
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(40);
  });

  it("has the version of the repository", () => {
    expect(version).toBe(manifests.find((manifest) => manifest.path === "package.json")?.version);
  });

  it("has a public surface that exists", () => {
    expect(targets).not.toEqual([]);
    expect(targets.filter((target) => !existsSync(join(repoDirectory, target)))).toEqual([]);
  });

  it("has a public surface that is a list of names written by hand", () => {
    const roots = files.filter((file) => targets.includes(file.path) && file.path.endsWith("/index.ts"));
    for (const root of roots) {
      expect(root.text, root.path).toMatch(
        /^(\s*(\/\/.*|\/\*[\s\S]*?\*\/|export (type )?\{[^}]*\} from "[^"]+";))*\s*$/,
      );
    }
  });
});
