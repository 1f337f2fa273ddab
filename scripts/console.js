// Bundles the operator's console: its script in parts, of which the page loads what it needs, and its style.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { compile } from 'tailwindcss'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = join(ROOT, 'src', 'console')
const BUNDLED_PACKAGES = [
  'preact',
  '@preact/signals',
  '@preact/signals-core',
  'openapi-fetch',
  'uplot',
  'tailwindcss',
]

/** The content of each file of console/, by its name. */
export async function builtConsole() {
  const bundle = await rolldown({
    cwd: ROOT,
    platform: 'browser',
    input: { app: './src/console/main.tsx' },
    resolve: { extensionAlias: { '.js': ['.ts', '.tsx', '.js'] } },
  })
  const { output } = await bundle.generate({
    format: 'esm',
    minify: true,
    entryFileNames: 'assets/[name]-[hash].js',
    chunkFileNames: 'assets/[name]-[hash].js',
    hashCharacters: 'hex',
  })
  await bundle.close()
  const scripts = output.map(({ fileName, code }) => [fileName, code])
  const [entry] = output.filter(({ isEntry }) => isEntry)
  const charts = readFileSync(join(ROOT, 'node_modules', 'uplot', 'dist', 'uPlot.min.css'), 'utf8')
  const style = hashed('style', 'css', `${await builtStyle()}\n${charts}`)
  const icon = hashed('icon', 'svg', readFileSync(join(SOURCES, 'icon.svg'), 'utf8'))
  const licenses = hashed('licenses', 'txt', BUNDLED_PACKAGES.map(licenseOf).join('\n'))
  const page = readFileSync(join(SOURCES, 'index.html'), 'utf8')
    .replace('{script}', entry.fileName)
    .replace('{style}', style[0])
    .replace('{icon}', icon[0])
    .replace('{licenses}', licenses[0])
  return new Map([...scripts, style, icon, licenses, ['index.html', page]])
}

/** The style sheet, with the rules of Tailwind for the classes that it and the pages use. */
async function builtStyle() {
  const { build } = await compile(readFileSync(join(SOURCES, 'style.css'), 'utf8'), {
    base: SOURCES,
    loadStylesheet: async (id, base) => {
      const path = join(ROOT, 'node_modules', id, 'index.css')
      return { path, base, content: readFileSync(path, 'utf8') }
    },
  })
  const pages = readdirSync(SOURCES, { recursive: true }).filter((name) => name.endsWith('.tsx'))
  const classes = pages.flatMap((name) =>
    [...readFileSync(join(SOURCES, name), 'utf8').matchAll(/class="([^"]+)"/g)].flatMap(([, names]) =>
      names.split(' '),
    ),
  )
  return build(classes.sort())
}

function hashed(name, extension, content) {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 10)
  return [`assets/${name}-${hash}.${extension}`, content]
}

function licenseOf(name) {
  return `${name}\n\n${readFileSync(join(ROOT, 'node_modules', name, 'LICENSE'), 'utf8')}`
}
