import { describe, expect, it } from "vitest";
import { configFields } from "./config-field.ts";
import { type ConfigSources, loadNodeConfig, parseNodeConfig } from "./load-node-config.ts";

/** Files by their path; what is not there is not found. */
function load(argv: string[] = [], env: NodeJS.ProcessEnv = {}, files: Record<string, unknown> = {}) {
  const readFile: ConfigSources["readFile"] = async (path) => {
    const content = files[path];
    if (content !== undefined) return typeof content === "string" ? content : JSON.stringify(content);
    throw Object.assign(new Error(`ENOENT: no such file ${path}`), { code: "ENOENT", errno: -2 });
  };
  return loadNodeConfig({ argv, env: { SANDPIPER_HOME: "/state", ...env }, readFile });
}

async function refusal(...sources: Parameters<typeof load>): Promise<string> {
  const error = await load(...sources).then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(error).toMatchObject({ code: "invalid_argument", reason: "invalid_config" });
  return `${error.message} | ${error.hint}`;
}

describe("the configuration of a node", () => {
  it("is complete when nobody says anything", async () => {
    expect(await load()).toMatchObject({
      host: "127.0.0.1",
      port: 4747,
      home: "/state",
      imagesDir: "/state/images",
      tls: { certFile: null, keyFile: null },
      allowInsecure: false,
      corsOrigins: [],
      defaults: { memoryMib: 256, ttlMs: null },
    });
  });

  it("comes from the file, then the environment, then flags", async () => {
    const files = {
      "/state/config.json": { port: 1, logLevel: "debug", maxSandboxes: 5, defaults: { memoryMib: 64 } },
    };
    const env = { SANDPIPER_PORT: "2", SANDPIPER_MAX_SANDBOXES: "6", SANDPIPER_DEFAULTS_DISK_MIB: "99" };
    expect(await load(["--port", "3"], env, files)).toMatchObject({
      port: 3,
      maxSandboxes: 6,
      logLevel: "debug",
      defaults: { memoryMib: 64, diskMib: 99, vcpuCount: 2 },
    });
  });

  it("reads another file when one is named, by flag before variable", async () => {
    const files = { "/state/config.json": { port: 1 }, "/etc/a.json": { port: 2 }, "/etc/b.json": { port: 3 } };
    expect(await load([], { SANDPIPER_CONFIG: "/etc/a.json" }, files)).toMatchObject({ port: 2 });
    expect(await load(["--config=/etc/b.json"], { SANDPIPER_CONFIG: "/etc/a.json" }, files)).toMatchObject({ port: 3 });
  });

  it("takes every kind of value as text", async () => {
    const argv = ["--allow-insecure", "--cors-origins", "https://a.example", "--cors-origins=https://b.example"];
    const pools = ["--pools", '[{"memoryMib":512,"target":4}]', "--defaults-ttl-ms=none", "--defaults-vcpu-count=0.5"];
    expect(await load([...argv, ...pools], { SANDPIPER_DEFAULTS_TTL_MS: "1000" })).toMatchObject({
      allowInsecure: true,
      corsOrigins: ["https://a.example", "https://b.example"],
      pools: [{ memoryMib: 512, target: 4 }],
      defaults: { ttlMs: null, vcpuCount: 0.5 },
    });
    const docker = { SANDPIPER_PROVIDERS: "gvisor, docker", SANDPIPER_DOCKER_ALLOWED_PATHS: "/srv,/data" };
    expect(await load(["--docker-url", "unix:///run/docker.sock"], docker)).toMatchObject({
      providers: ["gvisor", "docker"],
      docker: { url: "unix:///run/docker.sock", allowedPaths: ["/srv", "/data"], networks: ["bridge"], runtime: null },
    });
    expect(await load(["--allow-insecure=false"], { SANDPIPER_ALLOW_INSECURE: "1" })).toMatchObject({
      allowInsecure: false,
    });
  });

  it("takes an empty variable for one that is not set", async () => {
    expect(await load([], { SANDPIPER_PORT: "" })).toMatchObject({ port: 4747 });
  });

  it("lets one half of TLS stand in the file and the other in the environment", async () => {
    const files = { "/state/config.json": { tls: { certFile: "/c.pem" } } };
    expect(await load([], { SANDPIPER_TLS_KEY_FILE: "/k.pem" }, files)).toMatchObject({
      tls: { certFile: "/c.pem", keyFile: "/k.pem" },
    });
    expect(await refusal([], {}, files)).toContain("tls.certFile is set and tls.keyFile is not");
  });

  it("cannot be changed afterwards", async () => {
    const config = await load();
    expect([config, config.tls, config.defaults, config.pools].every((part) => Object.isFrozen(part))).toBe(true);
  });

  it("can be written down by a program, and is checked as any other", () => {
    expect(parseNodeConfig({ home: "/h", port: 0 })).toMatchObject({ home: "/h", imagesDir: "/h/images", port: 0 });
    expect(() => parseNodeConfig({ port: -1 })).toThrow("port -1 (from the program)");
  });
});

describe("a wrong configuration", () => {
  it.each([
    [["--port", "abc"], {}, 'port "abc" (from --port) is not allowed; allowed is a whole number from 0 to 65535'],
    [[], { SANDPIPER_PORT: "70000" }, "port 70000 (from SANDPIPER_PORT) is not allowed; allowed is a whole number"],
    [
      [],
      { SANDPIPER_LOG_LEVEL: "loud" },
      'logLevel "loud" (from SANDPIPER_LOG_LEVEL) is not allowed; allowed is one of',
    ],
    [[], { SANDPIPER_HOME: "here" }, 'home "here" (from SANDPIPER_HOME) is not allowed; allowed is an absolute path'],
    [["--allow-insecure=maybe"], {}, 'allowInsecure "maybe" (from --allow-insecure)'],
    [["--cors-origins=*"], {}, 'corsOrigins[0] ["*"] (from --cors-origins)'],
    [["--pools=[1,"], {}, 'pools "[1," (from --pools)'],
    [['--pools=[{"target":-1}]'], {}, 'pools[0].target [{"target":-1}] (from --pools)'],
    [["--defaults-ttl-ms=0"], {}, "defaults.ttlMs 0 (from --defaults-ttl-ms)"],
    [["--defaults-vcpu-count=0"], {}, "allowed is a number above 0 with at most two decimals"],
    [["--store=ftp://x"], {}, 'store "ftp://x" (from --store) is not allowed; allowed is file:///directory or s3://'],
    [["--advertise-url=http://a/b"], {}, 'advertiseUrl "http://a/b" (from --advertise-url)'],
    [["--lease-ms=1999"], {}, "leaseMs 1999 (from --lease-ms) is not allowed; allowed is a whole number from 2000"],
    [["--providers=docker,vmware"], {}, 'providers[1] ["docker","vmware"] (from --providers) is not allowed'],
    [["--providers=local"], {}, "providers has local, which isolates nothing"],
    [["--docker-url=ssh://host"], {}, 'docker.url "ssh://host" (from --docker-url)'],
    [["--docker-allowed-paths=srv"], {}, 'docker.allowedPaths[0] ["srv"] (from --docker-allowed-paths)'],
    [["--prot", "1"], {}, "there is no flag --prot | did you mean --port?"],
    [["--zzzzzzzz"], {}, "there is no flag --zzzzzzzz | take it away"],
    [["--port"], {}, "--port has no value"],
    [["--host", "--port=1"], {}, "--host has no value"],
    [["up"], {}, 'nothing is known of "up"'],
    [[], { SANDPIPER_PROT: "1" }, "there is no variable SANDPIPER_PROT | did you mean SANDPIPER_PORT?"],
    [["--config", "/nowhere.json"], {}, "the file /nowhere.json cannot be read"],
  ] as [string[], NodeJS.ProcessEnv, string][])(
    "%j %j is refused, saying what would be right",
    async (argv, env, text) => {
      expect(await refusal(argv, env)).toContain(text);
    },
  );

  it.each([
    [{ prot: 1 }, 'there is no key "prot" (from /state/config.json) | did you mean port?'],
    [
      { tls: { certfile: "/c" } },
      'there is no key "tls.certfile" (from /state/config.json) | did you mean tls.certFile?',
    ],
    [{ port: "1" }, 'port "1" (from /state/config.json) is not allowed'],
    [{ tls: true }, "tls (from /state/config.json) is no object | it holds tls.certFile, tls.keyFile"],
    [{ home: "/else" }, "home (from /state/config.json) is set in the file that is looked for in it"],
    ["{", "/state/config.json is not JSON"],
    [[], "/state/config.json holds no JSON object"],
    [{ port: -1, maxSandboxes: -1 }, "maxSandboxes -1"],
  ])("in the file, %j is refused, saying what would be right", async (file, text) => {
    expect(await refusal([], {}, { "/state/config.json": file })).toContain(text);
  });

  it("does not tell a secret that it refuses", async () => {
    const text = await refusal([], { SANDPIPER_CLUSTER_SECRET: "too short" });
    expect(text).toContain("clusterSecret [hidden] (from SANDPIPER_CLUSTER_SECRET) is not allowed");
    expect(text).not.toContain("too short");
  });

  it("leaves variables of other programs alone", async () => {
    await load([], { SANDPIPER_URL: "http://x", SANDPIPER_API_KEY: "k", SANDPIPER_SOMETHING_ELSE: "1" });
  });
});

describe("the fields of a configuration", () => {
  it("have one name each in the file, the environment and on the command line", () => {
    expect(configFields.find(({ key }) => key === "tls.certFile")).toMatchObject({
      env: "SANDPIPER_TLS_CERT_FILE",
      flag: "tls-cert-file",
    });
    for (const name of ["key", "env", "flag"] as const) {
      expect(new Set(configFields.map((field) => field[name])).size).toBe(configFields.length);
    }
  });

  it("are all described", () => {
    expect(configFields.filter(({ description, allowed }) => description === "" || allowed === "")).toEqual([]);
  });
});
