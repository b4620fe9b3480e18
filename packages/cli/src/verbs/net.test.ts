import type { FlowRecord, NetworkRequest } from "@sandpiper/sdk";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startMemoryNode } from "../testing/memory-node.ts";

const node = await startMemoryNode();
let id: string;
beforeEach(async () => {
  for await (const sandbox of node.client.sandboxes.list()) await sandbox.destroy();
  ({ id } = await node.client.sandboxes.create({ name: "work" }));
});
afterAll(() => node[Symbol.asyncDispose]());

const network = () => node.memory.network(id);

function flow(fields: Partial<FlowRecord> = {}): FlowRecord {
  const at = new Date().toISOString();
  const record = {
    id: crypto.randomUUID(),
    sandboxId: id as FlowRecord["sandboxId"],
    at,
    kind: "flow",
    name: "example.com",
    address: "203.0.113.1",
    port: 443,
    queryType: null,
    pid: 41,
    program: "curl",
    decision: "allowed",
    rule: "default",
    suggestion: null,
    reason: null,
    sentBytes: 10,
    receivedBytes: 20,
    durationMs: 5,
    endedAt: at,
    count: 1,
    ...fields,
  } satisfies FlowRecord;
  network().flows.push(record);
  return record;
}

function request(name: string, port = 443): NetworkRequest {
  const at = new Date().toISOString();
  const made = { id: crypto.randomUUID(), sandboxId: id as never, name, address: null, port, pid: 7, program: "pip" };
  network().requests.push({ ...made, at, expiresAt: at });
  return { ...made, at, expiresAt: at };
}

async function output(...argv: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await node.run("net", ...argv);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return stdout;
}

const json = async (...argv: string[]) => JSON.parse(await output(...argv));

describe("sandpiper net set and show", () => {
  it("set a network by name or by rules, and show it with its default", async () => {
    expect(await output("show", "work")).toMatch(/^deny {3}everything else\n/);
    expect(await output("set", "work", "allow=@pypi,api.example.com:80+443,deny=*.example.com")).toMatch(
      /^allow {2}@pypi\nallow {2}api\.example\.com {2}ports 80, 443\ndeny {3}\*\.example\.com\ndeny {3}everything else\n/,
    );
    expect(await json("show", "work", "--json")).toMatchObject({
      rules: [{ allow: "@pypi" }, {}, {}],
      default: "deny",
    });
    expect(await json("set", "work", "ask", "--json")).toMatchObject({ rules: [], default: "ask" });
  });

  it("accept a suggestion as it is printed", async () => {
    flow();
    const suggestion = (await output("suggest", "work")).trim();
    expect(suggestion).toBe("--network allow=example.com:443");
    expect(await json("set", "work", "--json", "--", suggestion)).toMatchObject({
      rules: [{ allow: "example.com", ports: [443] }],
    });
  });

  it.each(["everything", "allow=", "allow=exa mple", "allow=a:99999"])("exit with 2 for %j", async (text) => {
    const { exitCode, stderr } = await node.run("net", "set", "work", text);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("expected none, open, ask")]);
  });
});

describe("sandpiper net log", () => {
  it("prints the newest records as JSON, filtered", async () => {
    const old = flow({ at: "2020-01-01T00:00:00.000Z" });
    const denied = flow({ decision: "denied", reason: "default", suggestion: "allow=example.com:443" });
    const last = flow();
    expect(await json("log", "work")).toEqual([old, denied, last]);
    expect(await json("log", "work", "--denied")).toEqual([denied]);
    expect(await json("log", "work", "--limit", "1")).toEqual([last]);
    expect(await json("log", "work", "--since", "1h")).toEqual([denied, last]);
  });

  it("follows with one JSON object per line, until the sandbox is gone", async () => {
    const records = [flow({ endedAt: null, durationMs: null }), flow()];
    const lines = (await output("log", "-f", "work")).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual(records);
  });

  it.each([
    ["--since", "yesterday"],
    ["--limit", "none"],
  ])("exits with 2 for %s %s", async (...wrong) => {
    expect(await node.run("net", "log", "work", ...wrong)).toMatchObject({ stdout: "", exitCode: 2 });
  });
});

describe("sandpiper net suggest", () => {
  it("prints an option for create, or with --json the rules", async () => {
    flow({ port: 8443 });
    expect(await output("suggest", "work")).toBe("--network allow=example.com:8443\n");
    expect(await json("suggest", "work", "--json")).toMatchObject({ rules: [{ allow: "example.com", ports: [8443] }] });
  });

  it("says when nothing was recorded", async () => {
    const { stdout, stderr, exitCode } = await node.run("net", "suggest", "work");
    expect([stdout, exitCode]).toEqual(["", 0]);
    expect(stderr).toContain("no connection was recorded");
  });
});

describe("sandpiper net requests, approve and deny", () => {
  it("list what waits, and turn it into rules by ID, beginning of ID or host", async () => {
    const [first, second, third] = [request("pypi.org"), request("evil.example.com"), request("pypi.org", 80)];
    expect(await json("requests", "work")).toEqual([first, second, third]);
    expect(await output("approve", "work", "pypi.org")).toMatch(
      /^allow {2}pypi\.org {2}ports 80\nallow {2}pypi\.org {2}ports 443\n/,
    );
    expect(await json("deny", "work", second.id.slice(0, 13), "--json")).toMatchObject({
      rules: [{ deny: "evil.example.com", ports: [443] }, { allow: "pypi.org" }, { allow: "pypi.org" }],
    });
    expect(await json("requests", "work")).toEqual([]);
  });

  it("decide nothing when one request is not found", async () => {
    request("pypi.org");
    const { exitCode, stderr } = await node.run("net", "approve", "work", "pypi.org", "nowhere.example.com");
    expect(exitCode).toBe(1);
    expect(stderr).toContain('network request "nowhere.example.com" not found');
    expect(stderr).toContain("sandpiper net requests SANDBOX");
    expect(await json("requests", "work")).toHaveLength(1);
  });
});
