import type { Route } from './raw-handler.js'

/** Leaves every other method to the next route: a customer may be called by the name of such a question. */
export function onlyPost(route: Route): Route {
  return (req, res) => req.method === 'POST' && route(req, res)
}
