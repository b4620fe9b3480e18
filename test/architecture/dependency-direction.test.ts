import { describe, expect, it } from "vitest";
import { type Import, isTest, packageOf, readImports } from "./imports.ts";

const imports = readImports();
const testTools = ["vitest", "fast-check", "@modelcontextprotocol/client"];

/** Which packages of this repository, and which others, each package may import. `undefined` leaves the others open. */
const allowed: Record<string, { workspaces: readonly string[]; others: readonly string[] | undefined }> = {
  protocol: { workspaces: [], others: ["zod"] },
  core: { workspaces: ["@sandpiper/protocol"], others: ["zod"] },
  providers: { workspaces: ["@sandpiper/protocol", "@sandpiper/core"], others: undefined },
  node: {
    workspaces: ["@sandpiper/protocol", "@sandpiper/core", "@sandpiper/providers", "@sandpiper/sdk", "@sandpiper/mcp"],
    others: undefined,
  },
  sdk: { workspaces: ["@sandpiper/protocol"], others: ["ws"] },
  mcp: {
    workspaces: ["@sandpiper/sdk"],
    others: ["@modelcontextprotocol/server", "@modelcontextprotocol/server/stdio", "zod"],
  },
  cli: {
    workspaces: ["@sandpiper/protocol", "@sandpiper/core", "@sandpiper/node", "@sandpiper/sdk", "@sandpiper/mcp"],
    others: undefined,
  },
};

describe.each(Object.entries(allowed))("packages/%s", (name, { workspaces, others }) => {
  const own = imports.filter(({ from }) => from.startsWith(`packages/${name}/`));

  it("has imports", () => {
    expect(own).not.toEqual([]);
  });

  it(`imports no package of this repository but ${workspaces.join(", ") || "itself"}`, () => {
    const names = [...workspaces, `@sandpiper/${name}`];
    expect(wrong(own, ({ to }) => !isWorkspace(to) || names.includes(packageOf(to)))).toEqual([]);
  });

  it("imports other packages by name, never by file", () => {
    expect(wrong(own, ({ to }) => !to.includes("packages/") || to.startsWith(`packages/${name}/`))).toEqual([]);
  });

  if (others === undefined) return;
  it(`has no dependencies except ${others.join(", ") || "Sandpiper's"}, and test tools in tests`, () => {
    const elsewhere = own.filter(({ to }) => !isWorkspace(to) && !to.startsWith("packages/") && !isBuiltin(to));
    expect(wrong(elsewhere, ({ from, to }) => isFree(from, packageOf(to)) || others.includes(to))).toEqual([]);
  });
});

describe.each(["protocol", "core", "sdk"])("packages/%s, which is free of a runtime", (name) => {
  it("imports nothing of Node.js outside its tests", () => {
    const own = imports.filter(({ from }) => from.startsWith(`packages/${name}/`) && !isTest(from));
    expect(wrong(own, ({ to }) => !isBuiltin(to))).toEqual([]);
  });
});

describe("providers", () => {
  const providerOf = (path: string) => /^packages\/providers\/src\/([^/]+)\//.exec(path)?.[1];

  it("never import each other; host/ and guest/ are shared", () => {
    const own = imports.filter(({ from, to }) => providerOf(from) !== undefined && providerOf(to) !== undefined);
    expect(wrong(own, ({ from, to }) => [providerOf(from), "host", "guest"].includes(providerOf(to)))).toEqual([]);
  });

  it("are imported only by their package's root and one composition root", () => {
    const namers = imports
      .filter(({ from, to }) => packageOf(to) === "@sandpiper/providers" && !isTest(from))
      .map(({ from }) => from);
    expect([...new Set(namers)].filter((from) => from !== "packages/node/src/embedded/create-provider.ts")).toEqual([]);
    expect(new Set(namers).size, `one composition root, not ${namers.join(" and ")}`).toBeLessThanOrEqual(1);
  });
});

function wrong(candidates: readonly Import[], isRight: (candidate: Import) => boolean): string[] {
  return candidates.filter((candidate) => !isRight(candidate)).map(({ from, to }) => `${from} imports ${to}`);
}

function isWorkspace(specifier: string): boolean {
  return specifier.startsWith("@sandpiper/") || packageOf(specifier) === "sandpiper-cli";
}

function isBuiltin(specifier: string): boolean {
  return specifier.startsWith("node:");
}

/** Tests, and the contract suites that tests call, may use the test tools. */
function isFree(from: string, name: string): boolean {
  return (isTest(from) || from.includes("/testing/")) && testTools.includes(name);
}
