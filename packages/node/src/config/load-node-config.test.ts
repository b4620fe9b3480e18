import { describe, expect, it } from "vitest";
import { configFields } from "./config-field.ts";
import { type ConfigSources, loadNodeConfig, parseNodeConfig } from "./load-node-config.ts";

/** Loads a configuration from files given by path. */
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

describe("the node configuration", () => {
  it("has a default for every setting", async () => {
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

  it("overrides the file by the environment, and the environment by flags", async () => {
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

  it("reads the file named by --config, or else by SANDPIPER_CONFIG", async () => {
    const files = { "/state/config.json": { port: 1 }, "/etc/a.json": { port: 2 }, "/etc/b.json": { port: 3 } };
    expect(await load([], { SANDPIPER_CONFIG: "/etc/a.json" }, files)).toMatchObject({ port: 2 });
    expect(await load(["--config=/etc/b.json"], { SANDPIPER_CONFIG: "/etc/a.json" }, files)).toMatchObject({ port: 3 });
  });

  it("parses every kind of value from text", async () => {
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
      docker: { url: "unix:///run/docker.sock", allowedPaths: ["/srv", "/data"], networks: [], runtime: null },
    });
    expect(await load([], { SANDPIPER_TRUSTED_PROXIES: "10.0.0.7, 10.1.0.0/16" })).toMatchObject({
      trustedProxies: ["10.0.0.7", "10.1.0.0/16"],
    });
    expect(await load(["--allow-insecure=false"], { SANDPIPER_ALLOW_INSECURE: "1" })).toMatchObject({
      allowInsecure: false,
    });
  });

  it("treats an empty variable as unset", async () => {
    expect(await load([], { SANDPIPER_PORT: "" })).toMatchObject({ port: 4747 });
  });

  it("combines TLS settings from the file and the environment", async () => {
    const files = { "/state/config.json": { tls: { certFile: "/c.pem" } } };
    expect(await load([], { SANDPIPER_TLS_KEY_FILE: "/k.pem" }, files)).toMatchObject({
      tls: { certFile: "/c.pem", keyFile: "/k.pem" },
    });
    expect(await refusal([], {}, files)).toContain("tls.certFile is set but tls.keyFile is not");
  });

  it("is frozen after loading", async () => {
    const config = await load();
    expect([config, config.tls, config.defaults, config.pools].every((part) => Object.isFrozen(part))).toBe(true);
  });

  it("checks a configuration that a program passes as an object", () => {
    expect(parseNodeConfig({ home: "/h", port: 0 })).toMatchObject({ home: "/h", imagesDir: "/h/images", port: 0 });
    expect(() => parseNodeConfig({ port: -1 })).toThrow("port -1 (from the program)");
  });
});

describe("an invalid node configuration", () => {
  it.each([
    [["--port", "abc"], {}, 'port "abc" (from --port) is not allowed; expected a whole number from 0 to 65535'],
    [[], { SANDPIPER_PORT: "70000" }, "port 70000 (from SANDPIPER_PORT) is not allowed; expected a whole number"],
    [[], { SANDPIPER_LOG_LEVEL: "loud" }, 'logLevel "loud" (from SANDPIPER_LOG_LEVEL) is not allowed; expected one of'],
    [[], { SANDPIPER_HOME: "here" }, 'home "here" (from SANDPIPER_HOME) is not allowed; expected an absolute path'],
    [["--allow-insecure=maybe"], {}, 'allowInsecure "maybe" (from --allow-insecure)'],
    [["--cors-origins=*"], {}, 'corsOrigins[0] ["*"] (from --cors-origins)'],
    [["--pools=[1,"], {}, 'pools "[1," (from --pools)'],
    [['--pools=[{"target":-1}]'], {}, 'pools[0].target [{"target":-1}] (from --pools)'],
    [["--defaults-ttl-ms=0"], {}, "defaults.ttlMs 0 (from --defaults-ttl-ms)"],
    [["--defaults-vcpu-count=0"], {}, "expected a number above 0 with at most two decimals"],
    [["--store=ftp://x"], {}, 'store "ftp://x" (from --store) is not allowed; expected file:///directory, s3://'],
    [["--advertise-url=http://a/b"], {}, 'advertiseUrl "http://a/b" (from --advertise-url)'],
    [["--lease-ms=1999"], {}, "leaseMs 1999 (from --lease-ms) is not allowed; expected a whole number from 2000"],
    [["--providers=docker,vmware"], {}, 'providers[1] ["docker","vmware"] (from --providers) is not allowed'],
    [["--providers=local"], {}, "providers includes local, which isolates nothing"],
    [["--docker-url=ssh://host"], {}, 'docker.url "ssh://host" (from --docker-url)'],
    [["--docker-allowed-paths=srv"], {}, 'docker.allowedPaths[0] ["srv"] (from --docker-allowed-paths)'],
    [["--prot", "1"], {}, "unknown flag --prot | did you mean --port?"],
    [["--zzzzzzzz"], {}, "unknown flag --zzzzzzzz | remove it"],
    [["--port"], {}, "--port has no value"],
    [["--host", "--port=1"], {}, "--host has no value"],
    [["up"], {}, 'unexpected argument "up"'],
    [[], { SANDPIPER_PROT: "1" }, "unknown variable SANDPIPER_PROT | did you mean SANDPIPER_PORT?"],
    [["--config", "/nowhere.json"], {}, "cannot read the file /nowhere.json"],
  ] as [string[], NodeJS.ProcessEnv, string][])("is refused for %j %j with the correction", async (argv, env, text) => {
    expect(await refusal(argv, env)).toContain(text);
  });

  it.each([
    [{ prot: 1 }, 'unknown key "prot" (from /state/config.json) | did you mean port?'],
    [{ tls: { certfile: "/c" } }, 'unknown key "tls.certfile" (from /state/config.json) | did you mean tls.certFile?'],
    [{ port: "1" }, 'port "1" (from /state/config.json) is not allowed'],
    [{ tls: true }, "tls (from /state/config.json) is not an object | its settings are tls.certFile, tls.keyFile"],
    [{ home: "/else" }, "home cannot be set in /state/config.json, because home says where that file is"],
    ["{", "/state/config.json is not JSON"],
    [[], "/state/config.json does not hold a JSON object"],
    [{ port: -1, maxSandboxes: -1 }, "maxSandboxes -1"],
  ])("is refused for the file %j with the correction", async (file, text) => {
    expect(await refusal([], {}, { "/state/config.json": file })).toContain(text);
  });

  it("has a short error, however much of a file is wrong", async () => {
    const providers = Array.from({ length: 1000 }, () => "x".repeat(1000));
    const text = await refusal([], {}, { "/state/config.json": { providers } });
    expect(text).toContain("providers[0]");
    expect(text).toContain("and 980 more problems");
    expect(text.length).toBeLessThan(20_000);
  });

  it("hides the value of a refused secret", async () => {
    const text = await refusal([], { SANDPIPER_CLUSTER_SECRET: "too short" });
    expect(text).toContain("clusterSecret [hidden] (from SANDPIPER_CLUSTER_SECRET) is not allowed");
    expect(text).not.toContain("too short");
  });

  it("ignores variables of other programs", async () => {
    await load([], { SANDPIPER_URL: "http://x", SANDPIPER_API_KEY: "k", SANDPIPER_SOMETHING_ELSE: "1" });
  });
});

describe("the configuration fields", () => {
  it("have unique names in the file, the environment and on the command line", () => {
    expect(configFields.find(({ key }) => key === "tls.certFile")).toMatchObject({
      env: "SANDPIPER_TLS_CERT_FILE",
      flag: "tls-cert-file",
    });
    for (const name of ["key", "env", "flag"] as const) {
      expect(new Set(configFields.map((field) => field[name])).size).toBe(configFields.length);
    }
  });

  it("all have a description", () => {
    expect(configFields.filter(({ description, allowed }) => description === "" || allowed === "")).toEqual([]);
  });
});
