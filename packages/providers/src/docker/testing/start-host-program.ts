import * as hostProgram from "../../host/testing/start-host-program.ts";
import type { EngineFixture } from "./engine-fixture.ts";

const program = new URL("host-program.ts", import.meta.url);

/** Starts another program with the same state on the same engine. */
export function startHostProgram(
  { stateDirectory, url, image }: EngineFixture,
  options: hostProgram.HostProgramOptions = {},
): hostProgram.HostProgram {
  return hostProgram.startHostProgram(program, { stateDirectory, engineUrl: url, image }, options);
}
