import { Sandbox } from "@sandpiper/core";
import { LocalProvider } from "../provider.ts";

// A program that makes a sandbox, runs a command in it, and is killed by a test.
const [stateDirectory = "", command = ""] = process.argv.slice(2);
const sandbox = await Sandbox.create(new LocalProvider({ stateDirectory }));
await sandbox.start(command);
process.stdout.write(`${sandbox.id}\n`);
setInterval(() => {}, 60_000);
