// Runs in the network namespace of the tests' internet, and serves it until its parent ends.
import { createCertificates } from "./certificates.ts";
import { startPostgres, startSshd } from "./daemons.ts";
import { serveDatagrams } from "./datagram-server.ts";
import { serveDns } from "./dns-server.ts";
import { Sightings } from "./sightings.ts";
import { serveTcp } from "./tcp-servers.ts";
import { serveWeb } from "./web-servers.ts";
import type { WorldOptions, WorldReport, WorldStarted } from "./world.ts";
import { Zone } from "./zone.ts";

const { directory, dnsAddress, daemons } = JSON.parse(process.argv[2] ?? "{}") as WorldOptions;
const sightings = new Sightings();
const zone = new Zone();

const certificates = await createCertificates(directory);
const children = await Promise.all([
  ...(daemons.includes("postgres") ? [startPostgres(directory)] : []),
  ...(daemons.includes("sshd") ? [startSshd(directory)] : []),
]);
const web = await serveWeb({ directory, certificates, sightings });
await serveTcp(sightings);
await serveDatagrams();
await serveDns(zone, dnsAddress);
process.send?.({ authority: certificates.authority, npmLockFile: web.npmLockFile } satisfies WorldStarted);

process.on("message", () => process.send?.({ sightings: sightings.all, queries: zone.queries } satisfies WorldReport));
process.on("disconnect", () => {
  for (const child of children) child.kill("SIGKILL");
  process.exit(0);
});
