import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { createLogger } from "@sandpiper/node/server";
import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { openKeyring } from "../../packages/node/src/auth/node-secret.ts";
import { CheckpointStore } from "../../packages/node/src/store/checkpoint-store.ts";
import { DirectoryStore } from "../../packages/node/src/store/directory-store.ts";
import { startSdkNode } from "../sdk/sdk-node.ts";
import { GvisorHome } from "./gvisor-home.ts";
import { SecretApi } from "./secret-api.ts";
import { startTwoNodes } from "./two-nodes.ts";

const HOST = "api.secrets.test";
const OTHER = "other.secrets.test";
/** In two parts, so that the test's own source is no finding. */
const VALUE = ["sk-real", "9f8e7d6c5b4a39281706"].join("-");
/** The search inside knows only so much of the value: the beginning must be nowhere in the checkpoint. */
const END_CHARS = 12;
const ROTATED = ["sk-next", "0a1b2c3d4e5f60718293"].join("-");

async function world() {
  const stack = new AsyncDisposableStack();
  const home = stack.use(new GvisorHome());
  const api = stack.use(await SecretApi.start(home.path));
  const lines: string[] = [];
  const logger = createLogger({ logLevel: "trace", logFormat: "json", write: (line) => lines.push(line) });
  const node = stack.use(await startSdkNode(home.config({ logLevel: "trace", network: api.network }), { logger }));
  const { client } = node;
  const hosts = [`${HOST}:${api.port}`];
  const bearer = { header: "Authorization", format: "Bearer {}" };
  await client.secrets.create({ name: "bearer", value: VALUE, hosts, inject: bearer, env: "API_KEY" });
  const inject = { replaceIn: ["header" as const, "query" as const, "path" as const] };
  await client.secrets.create({ name: "placed", value: VALUE, hosts, inject, env: "PLACED_KEY" });
  const rules = [{ allow: "*.secrets.test", ports: [api.port] }];
  const create = (secrets: string[]) => client.sandboxes.create({ network: { rules }, secrets });
  return { home, api, node, client, lines, create, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function run(sandbox: Sandbox, command: string): Promise<string> {
  const { stdout, stderr, exitCode } = await sandbox.exec(command, { timeoutMs: 30_000 });
  expect({ stderr, exitCode }, command).toMatchObject({ exitCode: 0 });
  return stdout;
}

describe("secrets on gVisor", () => {
  it("reach their host from curl, Python and Node.js without a change to the programs", async () => {
    await using world_ = await world();
    const { api, create } = world_;
    const sandbox = await create(["bearer"]);
    const url = `https://${HOST}:${api.port}`;
    const programs = [
      `curl -fsS ${url}/curl2`,
      `curl -fsS --http1.1 ${url}/curl1`,
      `env -i curl -fsS ${url}/without-variables`,
      `/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("${url}/python").read())'`,
      `env -i /usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("${url}/plain-python").read())'`,
      `/usr/bin/node -e 'fetch("${url}/node").then(r => r.text()).then(console.log)'`,
    ];
    for (const program of programs) expect(await run(sandbox, program)).toContain("answer");
    expect(api.seen.map(({ url: path, version, authorization }) => `${path} ${version} ${authorization}`)).toEqual([
      `/curl2 2.0 Bearer ${VALUE}`,
      `/curl1 1.1 Bearer ${VALUE}`,
      `/without-variables 2.0 Bearer ${VALUE}`,
      `/python 1.1 Bearer ${VALUE}`,
      `/plain-python 1.1 Bearer ${VALUE}`,
      `/node 1.1 Bearer ${VALUE}`,
    ]);
    await sandbox.destroy();
  });

  it("replace the placeholder for their host only, and have the new value at the next request after a rotation", async () => {
    await using world_ = await world();
    const { api, client, create } = world_;
    const sandbox = await create(["placed"]);
    const placeholder = (await run(sandbox, 'printf %s "$PLACED_KEY"')).trim();
    expect(placeholder).toMatch(/^sandpiper-secret-[0-9a-f]{24}$/);
    expect(sandbox.info.secrets).toEqual([{ name: "placed", env: "PLACED_KEY", placeholder }]);
    const call = (host: string) =>
      run(
        sandbox,
        `curl -fsSk -H "Authorization: Token $PLACED_KEY" "https://${host}:${api.port}/v1/$PLACED_KEY?k=$PLACED_KEY"`,
      );
    await call(HOST);
    await call(OTHER);
    await client.secrets.update("placed", { value: ROTATED });
    await call(HOST);
    const [first, other, rotated] = api.seen;
    expect(first).toMatchObject({ url: `/v1/${VALUE}?k=${VALUE}`, authorization: `Token ${VALUE}` });
    expect(other).toMatchObject({ url: `/v1/${placeholder}?k=${placeholder}`, authorization: `Token ${placeholder}` });
    expect(rotated).toMatchObject({ url: `/v1/${ROTATED}?k=${ROTATED}`, authorization: `Token ${ROTATED}` });
    const logged = async () => {
      const flows = await Array.fromAsync(sandbox.network.log());
      return flows.filter(({ name }) => name === HOST).flatMap((record) => record.requests ?? []);
    };
    await expect.poll(logged).toEqual([
      { method: "GET", path: `/v1/${placeholder}`, status: 200 },
      { method: "GET", path: `/v1/${placeholder}`, status: 200 },
    ]);
    await sandbox.destroy();
  });

  it("work in a restored sandbox and in a fork, and after an update of a running one", async () => {
    await using world_ = await world();
    const { api, client, create } = world_;
    const sandbox = await create([]);
    const call = (each: Sandbox, path: string) => run(each, `curl -fsS https://${HOST}:${api.port}${path}`);
    await sandbox.update({ secrets: ["bearer"] });
    await call(sandbox, "/updated");
    await sandbox.pause();
    await sandbox.resume();
    await call(sandbox, "/resumed");
    const [fork] = await sandbox.fork();
    await call(fork as Sandbox, "/forked");
    expect(fork?.info.secrets).toEqual((await client.sandboxes.connect(sandbox.id)).info.secrets);
    await sandbox.update({ secrets: [] });
    await run(sandbox, `curl -fsSk https://${HOST}:${api.port}/removed`);
    expect(api.seen.map(({ url, authorization }) => [url, authorization])).toEqual([
      ["/updated", `Bearer ${VALUE}`],
      ["/resumed", `Bearer ${VALUE}`],
      ["/forked", `Bearer ${VALUE}`],
      ["/removed", undefined],
    ]);
    await fork?.destroy();
    await sandbox.destroy();
  });

  it("work after a handoff, and a rotation on one node reaches the sandboxes of the other", async () => {
    await using homes = new AsyncDisposableStack();
    const [first, second] = [homes.use(new GvisorHome()), homes.use(new GvisorHome())];
    await using api = await SecretApi.start(first.path);
    const { network } = api;
    const withNetwork = (home: GvisorHome) => ({ config: (more: object) => home.config({ network, ...more }) });
    const store = pathToFileURL(join(first.path, "shared")).href;
    await using nodes = await startTwoNodes([withNetwork(first), withNetwork(second)], { store, leaseMs: 10_000 });
    const hosts = [`${HOST}:${api.port}`];
    const inject = { header: "Authorization", format: "Bearer {}" };
    await nodes.here.secrets.create({ name: "bearer", value: VALUE, hosts, inject });
    const rules = [{ allow: HOST, ports: [api.port] }];
    const sandbox = await nodes.here.sandboxes.create({ network: { rules }, secrets: ["bearer"] });
    const url = `https://${HOST}:${api.port}`;
    await run(sandbox, `curl -fsS ${url}/here`);
    await nodes.bring(sandbox);
    const moved = await nodes.there.sandboxes.connect(sandbox.id);
    await run(moved, `curl -fsS ${url}/there`);
    await nodes.here.secrets.update("bearer", { value: ROTATED });
    const isRotated = async () => {
      await run(moved, `curl -fsS ${url}/rotated`);
      return api.seen.at(-1)?.authorization;
    };
    await expect.poll(isRotated, { timeout: 20_000 }).toBe(`Bearer ${ROTATED}`);
    expect(api.seen.slice(0, 2).map(({ url: path, authorization }) => [path, authorization])).toEqual([
      ["/here", `Bearer ${VALUE}`],
      ["/there", `Bearer ${VALUE}`],
    ]);
    await moved.destroy();
  });

  it("appear in no log line, event, error, audit entry, file of the node, guest memory or decrypted checkpoint", async () => {
    await using world_ = await world();
    const { api, client, create, home, lines, node } = world_;
    const sandbox = await create(["bearer", "placed"]);
    const url = `https://${HOST}:${api.port}`;
    await sandbox.files.write("/tmp/caller.py", caller(url));
    await sandbox.files.write("/tmp/searcher.py", SEARCHER);
    await sandbox.start("/usr/bin/python3 /tmp/searcher.py");
    await expect.poll(async () => (await sandbox.exec("test -e /tmp/found")).exitCode, { timeout: 60_000 }).toBe(0);
    expect(api.seen).toHaveLength(20);
    const errors = [
      await rejection(client.secrets.create({ name: "bearer", value: VALUE, hosts: [HOST] })),
      await rejection(client.secrets.create({ name: "bad", value: `${VALUE}\n`, hosts: [HOST] })),
      await rejection(client.secrets.update("missing", { value: VALUE })),
    ];
    expect(api.seen[0]).toMatchObject({ url: `/x?k=${VALUE}`, authorization: `Bearer ${VALUE}` });

    const [placed] = sandbox.info.secrets.filter(({ name }) => name === "placed");
    // The search finds what is inside.
    expect(JSON.parse(await run(sandbox, "cat /tmp/found"))).toEqual({ placeholder: true, value: false });

    const { id: checkpoint } = await sandbox.checkpoint();
    const restored = join(home.path, "decrypted");
    mkdirSync(restored);
    const store = new CheckpointStore({
      store: new DirectoryStore(join(home.path, "store")),
      keyring: openKeyring(home.path),
      clock: systemClock,
      directory: join(home.path, "scratch"),
    });
    await store.load({ id: sandbox.id, tenant: "default" }, checkpoint, restored);
    expect(filesWith(restored, placed?.placeholder as string)).not.toEqual([]);

    const reported = JSON.stringify([
      lines,
      errors.map(({ message, details, hint, stack }) => ({ message, details, hint, stack })),
      await client.pastEvents({ limit: 1000 }),
      await client.audit.list({ limit: 1000 }),
      await client.secrets.list(),
      await Array.fromAsync(sandbox.network.log()),
      sandbox.info,
      node.url,
    ]);
    expect(lines.length).toBeGreaterThan(0);
    expect(reported).toContain(placed?.placeholder);
    for (const text of [VALUE.slice(0, -END_CHARS), Buffer.from(VALUE).toString("base64").slice(0, 16)]) {
      expect(reported).not.toContain(text);
      expect(filesWith(home.path, text)).toEqual([]);
    }
    await sandbox.destroy();
  });
});

/** A program that stays alive with what it has received in its memory. */
const caller = (url: string) => `import urllib.request as u, os, time
r = u.Request("${url}/x?k=" + os.environ["PLACED_KEY"])
for _ in range(20): print(u.urlopen(r).read(), flush=True)
time.sleep(600)`;

/** Looks for the placeholder, and for the end of the value, in the memory of the caller, which only its parent may read. */
const SEARCHER = `import json, os, re, subprocess
caller = subprocess.Popen(["/usr/bin/python3", "/tmp/caller.py"], stdout=subprocess.PIPE)
for _ in range(20): caller.stdout.readline()
needles = {"placeholder": os.environ["PLACED_KEY"].encode(), "value": b"${VALUE.slice(-END_CHARS)}"}
found = {name: False for name in needles}
maps = open(f"/proc/{caller.pid}/maps").read()
memory = open(f"/proc/{caller.pid}/mem", "rb", 0)
for start, end in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) r", maps, re.M):
    try:
        memory.seek(int(start, 16))
        content = memory.read(int(end, 16) - int(start, 16))
    except (OSError, ValueError, OverflowError): continue
    for name, text in needles.items(): found[name] = found[name] or text in content
with open("/tmp/found.json", "w") as file: json.dump(found, file)
os.rename("/tmp/found.json", "/tmp/found")
caller.wait()`;

/** The files below a directory that contain the text. */
function filesWith(directory: string, text: string): readonly string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => contentOf(path).includes(text));
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    // The kernel shows some files in directories of instances that cannot be read as a whole.
    return Buffer.alloc(0);
  }
}
