import { fileURLToPath } from "node:url";
import * as hostProgram from "../../host/testing/start-host-program.ts";
import type { EngineFixture } from "./engine-fixture.ts";

const script = fileURLToPath(new URL("host-program.ts", import.meta.url));

/** Starts another program with the same state on the same engine. */
export function startHostProgram(
  { stateDirectory, url, image }: EngineFixture,
  options: hostProgram.HostProgramOptions = {},
): hostProgram.HostProgram {
  return hostProgram.startHostProgram(script, { stateDirectory, engineUrl: url, image }, options);
}
