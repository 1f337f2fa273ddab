import chromium from '@sparticuz/chromium'
import { type Browser, type BrowserContextOptions, chromium as driver, type Page } from 'playwright-core'
import { afterAll, onTestFinished } from 'vitest'

/** The one that npm brings runs on Linux; elsewhere it is the machine's own Chrome. */
async function launch(): Promise<Browser> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return driver.launch({ channel: 'chrome' })
  return driver.launch({
    executablePath: await chromium.executablePath(),
    // In one process, the end of a window can end the browser.
    args: chromium.args.filter((arg) => arg !== '--single-process'),
    headless: true,
  })
}

/** One browser for all tests of a file, each of which opens windows of its own. */
export function useBrowser(): { open(url: string, options?: BrowserContextOptions): Promise<Page> } {
  let browser: Promise<Browser> | null = null
  afterAll(async () => (await browser)?.close())
  return {
    async open(url, options) {
      browser ??= launch()
      const context = await (await browser).newContext(options)
      onTestFinished(() => context.close())
      const page = await context.newPage()
      await page.goto(url)
      return page
    },
  }
}
