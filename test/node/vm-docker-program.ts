import { Sandbox } from "@sandpiper/core";
import { createProvider } from "@sandpiper/node";
import { RESOURCES, VOLUMES_MIB } from "./vm-docker-home.ts";

/** A program that creates a sandbox in a project's machine, starts a command, prints their ids and waits to be killed. */
const [place = "{}", config = "{}", command = "true"] = process.argv.slice(2);
const { home, archive } = JSON.parse(place);
const provider = createProvider("vm-docker", {
  home,
  vmDocker: { images: [archive], ...RESOURCES, volumesMib: VOLUMES_MIB },
});
const sandbox = await Sandbox.create(provider, JSON.parse(config), { connectTimeoutMs: 120_000 });
const { id } = await sandbox.start(command);
process.stdout.write(`${JSON.stringify({ sandbox: sandbox.id, process: id })}\n`);
setInterval(() => {}, 60_000);
