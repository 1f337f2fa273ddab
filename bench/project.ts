import { fileURLToPath } from 'node:url'

/** The project's own folder; this file runs as `dist/bench/project.js` in it. */
export const PROJECT_FOLDER = fileURLToPath(new URL('../../', import.meta.url))
