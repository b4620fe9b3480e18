import { spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadNodeConfig } from "@sandpiper/node/server";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { systemEnv } from "./namespaces.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const knownVariables = new Set(read("docs/configuration.md").match(/SANDPIPER_[A-Z_]+/g));
const SECRET = "0123456789abcdef0123456789abcdef";
/** Variables of HAProxy's configuration; nodes have no such settings. */
const BALANCER_VARIABLES = /^SANDPIPER_(BIND|NODE_\d|ADMIN_SOCKET)$/;
/** Neither errors nor warnings. */
const ACCEPTED = { status: 0, stderr: "" };

const directory = sharedDirectory("deploy");

describe("haproxy.cfg", () => {
  const check = (env: NodeJS.ProcessEnv) => {
    const adminSocket = { SANDPIPER_ADMIN_SOCKET: join(directory, "admin.sock") };
    return call(["haproxy", "-c", "-f", join(root, "deploy/haproxy/haproxy.cfg")], { ...env, ...adminSocket });
  };

  it("is accepted by HAProxy without a warning, with a certificate", ({ skip }) => {
    const [pem, key] = [join(directory, "sandpiper.pem"), join(directory, "sandpiper.pem.key")];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"];
    const made = call(["openssl", "req", "-x509", "-nodes", ...kind, "-keyout", key, "-out", pem]);
    if (made.status !== 0) skip("openssl is not installed");
    const preset = /presetenv SANDPIPER_BIND "(.*)"/.exec(read("deploy/haproxy/haproxy.cfg"))?.[1] ?? "";
    expect(preset).toContain("/etc/haproxy/sandpiper.pem");
    expect(check({ SANDPIPER_BIND: preset.replace("/etc/haproxy/sandpiper.pem", pem) })).toEqual(ACCEPTED);
  });

  it("is accepted by HAProxy with the values that the compose file sets", () => {
    const [, balancer = ""] = read("deploy/compose/compose.yaml").split("\n  balancer:\n");
    const values = Object.fromEntries(settingsIn(balancer));
    expect(Object.keys(values)).toHaveLength(5);
    // The names of containers resolve only in the compose network.
    const numbers = Object.entries(values).map(([name, value]) => [name, value.replace(/^node-\d/, "127.0.0.1")]);
    expect(check(Object.fromEntries(numbers))).toEqual(ACCEPTED);
  });
});

describe("the systemd unit", () => {
  it("passes systemd-analyze verify", ({ skip }) => {
    if (call(["systemd-analyze", "--version"]).status !== 0) skip("systemd-analyze is not installed");
    const unit = join(directory, "sandpiper.service");
    writeFileSync(unit, read("deploy/systemd/sandpiper.service").replaceAll("/opt/sandpiper", root));
    expect(call(["systemd-analyze", "verify", unit])).toEqual(ACCEPTED);
  });
});

describe("the script that starts a node in a container", () => {
  it("is valid for sh", () => {
    expect(call(["sh", "-n", join(root, "deploy/compose/start-node.sh")])).toEqual(ACCEPTED);
  });
});

describe.each([
  {
    file: "deploy/systemd/sandpiper.env",
    stop: read("deploy/systemd/sandpiper.service"),
    limit: /^TimeoutStopSec=(\d+)$/m,
  },
  { file: "deploy/compose/compose.yaml", limit: /^ {2}stop_grace_period: (\d+)s$/m },
  {
    file: "deploy/kubernetes/sandpiper.yaml",
    limit: /^ {6}terminationGracePeriodSeconds: (\d+)$/m,
    before: /\[sleep, "(\d+)"\]/,
  },
  // Cloud Run always allows ten seconds; the file cannot change that.
  { file: "deploy/cloud-run/service.yaml", stop: "10", limit: /^(\d+)$/ },
])("$file", ({ file, stop = read(file), limit, before }) => {
  // Kubernetes substitutes the name of the pod.
  const text = read(file).replaceAll("$(POD_NAME)", "sandpiper-0");
  const settings = new Map(settingsIn(text).filter(([name]) => !BALANCER_VARIABLES.test(name)));
  const load = () =>
    loadNodeConfig({ argv: [], env: { ...Object.fromEntries(settings), SANDPIPER_CLUSTER_SECRET: SECRET } });

  it("has only settings of nodes, with valid values", async () => {
    expect([...settings.keys()].filter((name) => !knownVariables.has(name))).toEqual([]);
    const { store, allowInsecure, tls } = await load();
    expect(store).toEqual(expect.any(String));
    // Without a certificate, a TLS proxy is in front of the node.
    expect(allowInsecure).toBe(tls.certFile === null);
  });

  it("contains no secret", () => {
    expect(settings.get("SANDPIPER_CLUSTER_SECRET") ?? "").toMatch(/^(|\$\{.*)$/);
  });

  it("allows a node to drain and stop before it is killed", async () => {
    const { drainMs, stopGraceMs } = await load();
    const seconds = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1]);
    const beforeSignal = before === undefined ? 0 : seconds(stop, before);
    expect((seconds(stop, limit) - beforeSignal) * 1000).toBeGreaterThan(drainMs + stopGraceMs);
  });
});

describe("the deployment documents", () => {
  it("name only existing settings", () => {
    const pages = ["docs/deploy.md", ...globSync("deploy/**/*.md", { cwd: root })];
    const named = pages.flatMap((page) => read(page).match(/SANDPIPER_[A-Z_]+\d?/g) ?? []);
    expect(named.filter((name) => !knownVariables.has(name) && !BALANCER_VARIABLES.test(name))).toEqual([
      // The cookie's name looks like a setting.
      ...named.filter((name) => name === "SANDPIPER_NODE"),
    ]);
  });
});

/** A file's settings, written as `NAME=value`, `NAME: value` or `{ name: NAME, value: value }`. */
function settingsIn(text: string): [string, string][] {
  const pattern = /^[\s-]*(?:\{ name: )?(SANDPIPER_[A-Z_\d]+)(?:=|: |, value: )"?(.*?)"?(?: \})?$/gm;
  return [...text.matchAll(pattern)].map(([, name = "", value = ""]) => [name, value]);
}

function call([program, ...args]: readonly [string, ...string[]], env: NodeJS.ProcessEnv = {}) {
  const { status, stderr } = spawnSync(program, args, { env: { ...systemEnv, ...env }, encoding: "utf8" });
  return { status, stderr };
}
