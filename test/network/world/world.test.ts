import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "../../../bench/run.ts";
import { newBedName } from "../../cluster/bed-name.ts";
import { inNamespace, systemEnv } from "../../cluster/namespaces.ts";
import { Network } from "../../cluster/network.ts";
import { bedDirectory, removeAbandonedBeds, removeBed } from "../../cluster/sweep.ts";
import { addRoutes } from "./add-routes.ts";
import { addresses, forbiddenAddresses, ports } from "./addresses.ts";
import { World } from "./world.ts";

let visitor: string;
let world: World;
let files: string;
const bed = newBedName().name;

beforeAll(async () => {
  await removeAbandonedBeds();
  mkdirSync(bedDirectory(bed), { mode: 0o711 });
  const network = await Network.create(bed);
  await network.addHost("world", 10);
  await network.addHost("visitor", 11);
  visitor = `${bed}-visitor`;
  await addRoutes(visitor, 11);
  const directory = join(bedDirectory(bed), "world");
  world = await World.start(`${bed}-world`, { directory, daemons: ["postgres", "sshd"] });
  files = mkdtempSync(join(tmpdir(), "sandpiper-visitor-"));
  writeFileSync(join(files, "ca.pem"), world.authority);
});
afterAll(async () => {
  world?.stop();
  await removeBed(bed);
  await rm(files, { recursive: true, force: true });
});

/** What a program prints that runs on a machine beside the tests' internet. */
async function visit(...argv: readonly string[]): Promise<string> {
  const [program, ...args] = inNamespace(visitor, argv);
  return (await run(program, args, { env: systemEnv, cwd: files })).stdout;
}

/** Connects to the world's address for a name, as a client that has resolved it. */
function curl(url: string, ...args: readonly string[]): Promise<string> {
  const { hostname, port, protocol } = new URL(url);
  const at = `${hostname}:${port || (protocol === "https:" ? ports.https : ports.http)}:${addresses.site}`;
  return visit("curl", "-sS", "--fail", "--cacert", "ca.pem", "--resolve", at, ...args, url);
}

describe("the tests' internet", () => {
  it.each([addresses.site, addresses.other, ...forbiddenAddresses])(
    "answers at %s, so that an attempt that gets there is seen",
    async (address) => {
      const host = address.includes(":") ? `[${address}]` : address;
      expect(await visit("curl", "-sS", "-g", `http://${host}/`)).toContain(`reached ${address}`);
      const { sightings } = await world.report();
      expect(sightings.at(-1)).toMatchObject({ address, port: ports.http });
    },
  );

  it("serves HTTPS sites over HTTP/1.1 and HTTP/2 with certificates of its own authority", async () => {
    expect(await curl("https://site.example/", "--http1.1", "-w", "%{http_version}")).toMatch(
      /as site\.example\n1\.1$/,
    );
    expect(await curl("https://site.example/", "--http2", "-w", "%{http_version}")).toMatch(/as site\.example\n2$/);
  });

  it("serves redirects, events and large bodies", async () => {
    const to = encodeURIComponent(`http://${addresses.private10}/`);
    expect(await curl(`http://site.example/redirect?to=${to}`, "-w", "%{redirect_url}")).toContain(addresses.private10);
    expect(await curl("http://site.example/events")).toBe("data: 1\n\ndata: 2\n\ndata: 3\n\n");
    const download = ["-o", "large", "-w", "%{size_download}"];
    expect(await curl("https://site.example/download?bytes=3000000", ...download)).toBe("3000000");
    expect(await curl("https://site.example/upload", "--data-binary", "@large")).toMatch(/^3000000 /);
  });

  it("serves Python, npm and Debian packages, and repositories over HTTPS and SSH", async () => {
    expect(await curl("https://pypi.org/simple/tern/")).toContain("files.pythonhosted.org/packages/tern-1.0.0");
    expect(await curl("https://registry.npmjs.org/tern")).toContain('"dist-tags":{"latest":"1.0.0"}');
    expect(await curl("http://deb.debian.org/tests/./Packages")).toContain("Package: plover");
    const git = ["env", `GIT_SSL_CAINFO=${files}/ca.pem`, "git", "-c"];
    const resolve = `http.curloptResolve=github.com:443:${addresses.site}`;
    await visit(...git, resolve, "clone", "--quiet", "https://github.com/birds/tern.git", "https");
    const ssh = `ssh -i ${world.directory}/git-key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR`;
    await visit(
      "git",
      "-c",
      `core.sshCommand=${ssh}`,
      "clone",
      "--quiet",
      `git@${addresses.site}:birds/tern.git`,
      "ssh",
    );
    expect(await visit("cat", "https/README", "ssh/README")).toBe("a tern\na tern\n");
  });

  it("serves PostgreSQL and names", async () => {
    const query = ["-h", addresses.site, "-U", "postgres", "-Atc", "select 6 * 7"];
    expect(await visit("psql", ...query)).toBe("42\n");
    const script = `import { Resolver } from "node:dns/promises";
      const resolver = new Resolver(); resolver.setServers(["${addresses.dns}"]);
      const a = await resolver.resolve4("alias-to-private.example");
      const first = await resolver.resolve4("one.rebinding.example");
      const second = await resolver.resolve4("one.rebinding.example");
      const missing = await resolver.resolve4("missing.example").catch((error) => error.code);
      console.log(JSON.stringify([a, first, second, missing, await resolver.resolve6("v6.example")]));`;
    const answers: unknown = JSON.parse(await visit(process.execPath, "--input-type=module", "-e", script));
    expect(answers).toEqual([
      [addresses.private10],
      [addresses.site],
      [addresses.private10],
      "ENOTFOUND",
      [addresses.siteV6],
    ]);
  });
});
