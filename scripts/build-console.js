// Makes console/ of src/console: `npm run console`. It is kept in the repository, since an install without development
// dependencies has no bundler. test/console/build.test.ts compares the two.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { builtConsole } from './console.js'

const TARGET = join(import.meta.dirname, '..', 'console')

const files = await builtConsole()
for (const [name, content] of files) {
  mkdirSync(dirname(join(TARGET, name)), { recursive: true })
  writeFileSync(join(TARGET, name), content)
}
for (const entry of readdirSync(TARGET, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name)
  if (entry.isFile() && !files.has(path.slice(TARGET.length + 1))) rmSync(path)
}
