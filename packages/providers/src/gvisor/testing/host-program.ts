import { runHostProgram } from "../../host/testing/host-program.ts";
import { GvisorProvider } from "../provider.ts";

await runHostProgram((options) => new GvisorProvider(options));
