import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { createContext, Script } from "node:vm";
import { rolldown } from "rolldown";
import { describe, expect, it } from "vitest";
import { packageOf } from "../architecture/imports.ts";
import { blocksOf, commentsOf, readDocument } from "../e2e/document.ts";
import { useNode } from "../sdk/sdk-node.ts";
import { findNode20 } from "./node-20.ts";
import { PackedPackages, repo, type StagedPackage } from "./packed-packages.ts";

const run = promisify(execFile);
const tsc = join(repo, "node_modules/.bin/tsc");
const TIMEOUT_MS = 120_000;

const packages = PackedPackages.use();
const sdk = packages.install("sdk", "protocol");
const all = packages.install("cli", "core", "mcp", "node", "protocol", "providers", "sdk");
const node = await useNode();

/** The node's address and key, for programs. */
function environment(): NodeJS.ProcessEnv {
  return { ...process.env, SANDPIPER_URL: node.url, SANDPIPER_API_KEY: node.apiKey };
}

/** Where the clone has the programs that the npm packages do not contain. */
function builtPrograms(): NodeJS.ProcessEnv {
  const built = (name: string) => join(repo, "agent/target/release", name);
  return {
    SANDPIPER_AGENT: built("sandpiper-agent"),
    SANDPIPER_LAUNCH: built("sandpiper-launch"),
    SANDPIPER_GUARD: built("sandpiper-guard"),
  };
}

describe("a packed package", () => {
  it("depends on exact versions of the others", () => {
    const staged = packages.staged();
    expect(staged.map(({ manifest }) => manifest.name).sort()).toEqual([
      "@sandpiper/core",
      "@sandpiper/mcp",
      "@sandpiper/node",
      "@sandpiper/protocol",
      "@sandpiper/providers",
      "@sandpiper/sdk",
      "sandpiper-cli",
    ]);
    for (const { manifest } of staged) {
      expect(manifest.private, manifest.name).toBeUndefined();
      const own = Object.entries(manifest.dependencies ?? {}).filter(([name]) => name.startsWith("@sandpiper/"));
      expect(own.filter(([, version]) => version !== manifest.version)).toEqual([]);
    }
  });

  it("contains every file that it imports, and declares every package", () => {
    const wrong = packages.staged().flatMap(({ directory, manifest }) =>
      globSync("dist/**/*.{js,mjs,d.ts}", { cwd: directory }).flatMap((name) => {
        const file = join(directory, name);
        return importsOf(readFileSync(file, "utf8"))
          .filter((specifier) => !specifier.startsWith("node:"))
          .filter((specifier) =>
            specifier.startsWith(".")
              ? !existsSync(resolve(dirname(file), specifier))
              : manifest.dependencies?.[packageOf(specifier)] === undefined,
          )
          .map((specifier) => `${manifest.name}: ${name} imports ${specifier}`);
      }),
    );
    expect(wrong).toEqual([]);
  });
});

const program = `
import { Client, decodeText, type ExecResult, SandboxError, Session, type SessionResult } from "@sandpiper/sdk";

const client = new Client();
const sandbox = await client.sandboxes.create({ ttlMs: 60_000 });
try {
  const result: ExecResult = await sandbox.exec("echo hello; exit 3");
  console.log(result.stdout.trim(), result.exitCode);
  const cat = await sandbox.start(["cat"], { stdin: true });
  await cat.write("echoed");
  await cat.closeStdin();
  for await (const text of decodeText(cat.stdout)) console.log(text);
  await sandbox.exec("sleep 60", { signal: AbortSignal.timeout(100) }).catch((error: unknown) => {
    if (error instanceof SandboxError) console.log(error.code);
  });
  const session = await Session.attach(sandbox.id, { token: sandbox.token });
  const ran: SessionResult = await session.run("python", "print('in a session')");
  console.log(ran.stdout.trim());
  await session.close();
} finally {
  await sandbox.destroy();
  client.close();
}
`;

describe("the packed SDK in another directory", { timeout: TIMEOUT_MS }, () => {
  it("passes tsc --strict, declarations included, and runs commands in a sandbox on Node.js 20", async () => {
    writeFileSync(join(sdk.path, "program.ts"), program);
    const strict = ["--strict", "--skipLibCheck", "false", "--exactOptionalPropertyTypes", "--types", ""];
    const target = ["--target", "es2022", "--module", "nodenext"];
    const compiled = await run(tsc, [...strict, ...target, "program.ts"], { cwd: sdk.path }).catch((error) => error);
    expect(compiled.stdout).toBe("");
    const node20 = await findNode20(mkdir(join(sdk.path, "node-20")));
    const { stdout, stderr } = await run(node20, ["program.js"], { cwd: sdk.path, env: environment() });
    expect({ stdout, stderr }).toEqual({ stdout: "hello 3\nechoed\ncanceled\nin a session\n", stderr: "" });
  });

  it("bundles for a browser without a module of Node.js, and runs commands with a browser's globals", async () => {
    writeFileSync(join(sdk.path, "browser.js"), 'export { Client, Session } from "@sandpiper/sdk";\n');
    const bundle = await rolldown({ input: join(sdk.path, "browser.js"), platform: "browser", logLevel: "silent" });
    const { output } = await bundle.generate({ format: "iife", name: "sdk", codeSplitting: false });
    await bundle.close();
    const [{ code, imports, moduleIds }] = output;
    expect(imports).toEqual([]);
    expect(moduleIds.filter((id) => /^node:|\/ws\/(?!browser\.js)/.test(id))).toEqual([]);
    expect(code).not.toMatch(/\brequire\("node:|from "node:|import\("node:/);

    const page = createContext(browserGlobals());
    new Script(code).runInContext(page);
    Object.assign(page, { options: { url: node.url, apiKey: node.apiKey } });
    const script = new Script(`(async () => {
        const client = new sdk.Client(options);
        const sandbox = await client.sandboxes.create({ ttlMs: 60_000 });
        try {
          const session = await sdk.Session.attach(sandbox.id, { ...options, apiKey: sandbox.token });
          const { stdout } = await session.run("bash", "echo in a session");
          await session.close();
          return (await sandbox.exec("echo hello")).stdout + stdout;
        } finally {
          await sandbox.destroy();
          client.close();
        }
      })()`);
    expect(await script.runInContext(page)).toBe("hello\nin a session\n");
  });
});

describe("packed node, MCP server and command line in another directory", { timeout: TIMEOUT_MS }, () => {
  const sandpiper = (argv: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const path = `${dirname(process.execPath)}:${process.env["PATH"]}`;
    const home = join(all.path, "home");
    const options = { cwd: all.path, env: { ...process.env, PATH: path, SANDPIPER_HOME: home, ...env } };
    return run(join(all.path, "node_modules/.bin/sandpiper"), argv, options).catch((error) => error);
  };

  it("passes tsc --strict, declarations included", async () => {
    const names = packages.staged().flatMap(({ manifest }) => entriesOf(manifest));
    const imports = names.map((name, index) => `export * as name${index} from "${name}";`);
    writeFileSync(join(all.path, "all.ts"), imports.join("\n"));
    const argv = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2024", "all.ts"];
    const compiled = await run(tsc, argv, { cwd: all.path }).catch((error) => error);
    expect(compiled.stdout).toBe("");
    expect(names).toContain("@sandpiper/node/server");
  });

  it("prints its version and its help", async () => {
    const { version } = JSON.parse(readFileSync(join(repo, "package.json"), "utf8"));
    expect((await sandpiper(["--version"])).stdout).toBe(`sandpiper ${version}\n`);
    expect((await sandpiper(["--help"])).stdout).toContain("Usage: sandpiper ");
  });

  it("names the Node.js version that it needs when it runs on an older one", async () => {
    const node20 = await findNode20(mkdir(join(all.path, "node-20")));
    const main = join(all.path, "node_modules/sandpiper-cli/dist/main.mjs");
    const { code, stderr } = await run(node20, [main, "--version"]).catch((error) => error);
    expect(code).toBe(125);
    expect(stderr).toContain("Node.js 24 or newer is needed; found: v20.");
  });

  it("explains how to get the agent, which is not packed, and runs commands with one", async () => {
    const without = await sandpiper(["run", "--", "echo", "hello"]);
    expect(without.code).toBe(125);
    expect(without.stderr).toMatch(/sandpiper-(agent|launch) not found .*npm run setup.*clone.*SANDPIPER_/s);
    expect((await sandpiper(["run", "--", "echo", "hello"], builtPrograms())).stdout).toBe("hello\n");
  });

  it.each(["core", "mcp", "node", "protocol", "providers", "sdk"])(
    "runs the program in the README of %s, which prints what its comments say",
    async (folder) => {
      const [text = ""] = blocksOf(readDocument(`packages/${folder}/README.md`), "ts");
      const file = join(all.path, `${folder}.ts`);
      writeFileSync(file, text);
      const env = { ...environment(), ...builtPrograms(), SANDPIPER_HOME: join(all.path, "home") };
      const child = spawn(process.execPath, [file], { cwd: all.path, env, stdio: ["ignore", "pipe", "inherit"] });
      const chunks = await child.stdout.toArray();
      if (child.exitCode === null) await once(child, "exit");
      expect(text).toContain("import ");
      expect(child.exitCode).toBe(0);
      const expected = commentsOf(text).map((comment) => `${comment}\n`);
      expect(Buffer.concat(chunks).toString()).toBe(expected.join(""));
    },
  );
});

function mkdir(path: string): string {
  mkdirSync(path, { recursive: true });
  return path;
}

/** The globals of a browser's pages. */
function browserGlobals(): Record<string, unknown> {
  const names = [
    ...["AbortController", "AbortSignal", "Blob", "Headers", "ReadableStream", "Request", "Response", "TextDecoder"],
    ...["TextEncoder", "URL", "URLSearchParams", "WebSocket", "clearTimeout", "crypto", "fetch", "performance"],
    ...["queueMicrotask", "setTimeout"],
  ];
  return Object.fromEntries(names.map((name) => [name, Reflect.get(globalThis, name)]));
}

/** The module names that a program may import. */
function entriesOf({ name, exports = {} }: StagedPackage["manifest"]): string[] {
  const paths = Object.keys(exports).filter((path) => path !== "./package.json");
  return paths.map((path) => `${name}${path.slice(1)}`);
}

function importsOf(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  const specifiers = /^(?:import|export)\b[^"'`;]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm;
  return [...code.matchAll(specifiers)].map((match) => match[1] ?? match[2] ?? (match[3] as string));
}
