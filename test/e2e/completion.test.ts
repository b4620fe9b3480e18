import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@sandpiper/sdk";
import { beforeAll, describe, expect, it } from "vitest";
import { useNode } from "./node-process.ts";
import { sandpiper } from "./run-cli.ts";

const node = await useNode();
const trap = join(node.home, "trap");
let unnamed: string;
let checkpoint: string;
let script: string;

beforeAll(async () => {
  const apiKey = readFileSync(join(node.home, "api-key"), "utf8").trim();
  const client = new Client({ url: node.url, apiKey });
  const alpha = await client.sandboxes.create({ name: "alpha" });
  await (await alpha.start("sleep 1000", { id: "sleeper" })).detach();
  checkpoint = (await alpha.checkpoint({ name: "clean" })).id;
  unnamed = (await client.sandboxes.create({ name: `a $(touch ${trap})` })).id;
  script = (await node.run(["completion", "bash"])).stdout;
});

/** What bash offers for the last word. */
function complete(...words: string[]): string[] {
  const line = `COMP_WORDS=(${[sandpiper, ...words].map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}`;
  const text = `${script}\n${line}; _sandpiper; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = { ...process.env, ...node.env };
  const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", text], { encoding: "utf8", env });
  expect(stderr).toBe("");
  return stdout
    .trim()
    .split("\n")
    .filter((word) => word !== "" && !word.startsWith("-"));
}

describe("completion in bash, with a node", () => {
  it("offers sandboxes by name, or by id where a shell would interpret the name", () => {
    expect(complete("get", "").toSorted()).toEqual(["alpha", unnamed].toSorted());
    expect(complete("get", "al")).toEqual(["alpha"]);
    expect(complete("exec", "--timeout", "5m", "al")).toEqual(["alpha"]);
    expect(complete("rm", "alpha", "al")).toEqual(["alpha"]);
    expect(existsSync(trap)).toBe(false);
  });

  it("offers the processes and checkpoints of the sandbox that the line names", () => {
    expect(complete("logs", "alpha", "")).toEqual(["sleeper"]);
    expect(complete("kill", "--signal", "TERM", "alpha", "sl")).toEqual(["sleeper"]);
    expect(complete("rollback", "alpha", "")).toEqual(["clean"]);
    expect(complete("restore", "")).toEqual([checkpoint]);
  });

  it("offers nothing after all operands, for an unknown sandbox, and without a node", () => {
    expect(complete("get", "alpha", "")).toEqual([]);
    expect(complete("logs", "nothing", "")).toEqual([]);
    const { port } = new URL(node.url);
    node.env["SANDPIPER_PORT"] = "1";
    expect(complete("get", "")).toEqual([]);
    node.env["SANDPIPER_PORT"] = port;
  });
});
