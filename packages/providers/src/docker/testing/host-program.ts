import { runHostProgram } from "../../host/testing/host-program.ts";
import { DockerProvider } from "../provider.ts";

await runHostProgram((options) => new DockerProvider(options));
