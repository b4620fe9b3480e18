import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Route, routes } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { createProvider } from "../embedded/create-provider.ts";
import { createTestNode } from "./testing/test-node.ts";

const text = readFileSync(new URL("../../../../docs/rest.md", import.meta.url), "utf8");
const run = promisify(execFile);

describe("docs/rest.md", () => {
  it("has commands that work as printed, on a gVisor sandbox", async () => {
    const lines = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = ""]) => block).join("\n");
    const directory = mkdtempSync(join(tmpdir(), "sandpiper-rest-document-"));
    await using undo = new AsyncDisposableStack();
    undo.defer(() => rmSync(directory, { recursive: true, force: true }));
    const node = undo.use(await createTestNode({ provider: createProvider("gvisor", { home: directory }) }));
    node.keys.firstKey(node.home);
    const server = undo.use(await node.listen());
    // The commands write to /tmp; the test uses its own directory instead.
    const script = lines.replaceAll("/tmp/", `${directory}/`);
    const env = { PATH: process.env["PATH"], HOME: directory, SANDPIPER_URL: server.url, SANDPIPER_HOME: node.home };
    const { stdout } = await run("bash", ["-euo", "pipefail", "-c", script], { env });
    for (const shown of ['"stdout":"hello\\n"', '"exitCode":3', "LOUD", "outsidebye", "hello file", '"key":"spk_']) {
      expect(stdout).toContain(shown);
    }
    expect(stdout).toMatch(/\bfile$/m);
    expect(stdout).toContain("event: sandbox.ready");
    expect(node.records.live()).toEqual([]);
  });

  it("lists every operation and its required scope", () => {
    const rows = [...text.matchAll(/^\| (`[A-Z].*?) \|.*\| (.*?) \|$/gm)].map(([, head = "", access = ""]) => {
      const path = /(\/\S*)`$/.exec(head)?.[1] ?? "";
      const methods = head.match(/[A-Z]{3,}/g) ?? [];
      const scopes = access.replaceAll("`", "").split(", ");
      return methods.map((method, index) => `${method} ${path} ${scopes[index] ?? scopes[0]}`);
    });
    const known = Object.values<Route>(routes).map(({ method, path, access }) => `${method} ${path} ${access}`);
    expect(rows.flat().sort()).toEqual(known.sort());
  });
});
