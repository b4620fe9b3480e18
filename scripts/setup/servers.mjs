import { provideRegistry } from "./registry.mjs";
import { provideS3Server } from "./s3-server.mjs";

/**
 * The servers that tests start. They are built before tests run: a build beside them would take their processors away.
 * @returns {import("./plan.d.ts").Plan}
 */
export function planServers() {
  return { detail: "an S3 server, a registry of images", problems: [], work: provideServers };
}

/** Costs nothing where both are there already. */
async function provideServers() {
  await provideS3Server();
  await provideRegistry();
}
