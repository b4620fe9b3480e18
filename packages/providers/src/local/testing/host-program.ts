import { runHostProgram } from "../../host/testing/host-program.ts";
import { LocalProvider } from "../provider.ts";

await runHostProgram((options) => new LocalProvider(options));
