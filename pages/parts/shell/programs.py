"""Addresses for programs: the runs that UDML_API exposes, and a search by an image. They only read.

The routes stand behind the same middleware as the pages, which checks Host and Origin and adds the security headers.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Set
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import streamlit as st
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import runs_folder

from .warming import wait_for_step

if TYPE_CHECKING:  # it imports torch, which the start of the server does not wait for
    from udml_core.runs import Run
    from udml_core.runs.search import Retrieval

MOST_BYTES = 32 * 1024**2
"""Largest length of an image's file."""
LONGEST_WAIT = 60.0
"""Seconds that a body may take to arrive."""
MOST_WAITING = 8
"""Searches that may wait for another one; each holds its image in the memory."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PARAMETERS = ("run", "k", "gallery")
"""Parameters of a search."""
FORM = "multipart/form-data"
MOST_FIELDS = 10
"""Files and other fields of a form that are read, to say what is wrong with it."""
MOST_OPEN = 2
"""Runs that stay open between searches."""


class Programs:
    """The routes, and the runs that were searched last."""

    def __init__(self) -> None:
        self._opened: OrderedDict[str, Retrieval] = OrderedDict()
        self._searching = threading.Lock()
        self._waiting = 0

    def routes(self, base: str) -> list[Route]:
        """Return the routes below the path at which the app is reached."""
        start = start_of(base)
        return [_route(f"{start}/runs", "GET", self._runs, ()),
                _route(f"{start}/search", "POST", self._search, PARAMETERS),
                *(Route(path, _unknown, methods=METHODS) for path in (start, f"{start}/{{rest:path}}"))]

    async def _runs(self, _request: Request) -> JSONResponse:
        return await _answered(self._listed)

    def _listed(self) -> dict[str, Any]:
        from udml_core.runs.search import programs as answers

        runs = answers.exposed_runs(runs_folder())
        return {"runs": [answers.run_values(run) for run in runs]} | ({} if runs else {"reason": answers.why_no_run()})

    async def _search(self, request: Request) -> JSONResponse:
        if self._waiting >= MOST_WAITING:
            return refused(503, "Too many searches wait. Try again in a few seconds.", {"Retry-After": "5"})
        self._waiting += 1
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                content = await _body(request)
            if content is None:
                return refused(413, f"The image must have at most {MOST_BYTES:,} bytes.")
            fields: list[tuple[str, str]] = []
            if request.headers.get("content-type", "").startswith(FORM):
                content, fields = await _read_form(request, content)
            elif not content:
                return refused(400, "The body is empty. Send the content of an image file, or a form with one file.")
            given = _parameters([*request.query_params.multi_items(), *fields])
            return await _answered(lambda: self._hits(given["run"], content, int(given["k"]), given["gallery"]))
        except UserError as error:
            return refused(400, str(error))
        except TimeoutError:
            return refused(408, f"The image did not arrive within {LONGEST_WAIT:g} seconds.")
        finally:
            self._waiting -= 1

    def _hits(self, run_id: str, content: bytes, k: int, gallery: str) -> dict[str, Any]:
        from udml_core.runs.search import programs as answers

        run = answers.exposed_run(run_id, runs_folder())
        with self._searching:  # a decoded image can take a gigabyte
            return answers.search_values(self._retrieval(run), content, k, gallery)

    def _retrieval(self, run: Run) -> Retrieval:
        from udml_core.runs.search import programs as answers

        opened = self._opened.get(run.id)
        if opened is None or opened.spec != run.spec():
            opened = self._opened[run.id] = answers.open_exposed(run)
        self._opened.move_to_end(run.id)
        while len(self._opened) > MOST_OPEN:
            self._opened.popitem(last=False)
        return opened


def start_of(base: str) -> str:
    """Return how the paths of addresses for programs begin, below the path at which the app is reached."""
    return f"/{base.strip('/')}".rstrip("/") + "/api"


def _route(path: str, method: str, answer: Callable[[Request], Awaitable[Response]], parameters: tuple[str, ...]
           ) -> Route:
    """Return a route that refuses other methods, which Streamlit would answer with its page, and other parameters."""
    async def respond(request: Request) -> Response:
        if request.method != method:
            return refused(405, f"This address answers {method} only.", {"Allow": method})
        if unknown := set(request.query_params) - set(parameters):
            return refused(400, _unknown_words(unknown, parameters))
        if _needs_login():
            return refused(403, "This server asks its readers to log in, which programs cannot.")
        return await answer(request)

    return Route(path, respond, methods=METHODS)


async def _unknown(_request: Request) -> JSONResponse:
    """Refuse an address that has no route, which Streamlit would answer with its page otherwise."""
    return refused(404, "This address does not exist. GET /api/runs and POST /api/search do.")


async def _body(request: Request) -> bytes | None:
    """Return the body of a request; None if it is too long, whatever length it declares.

    As much again is read and dropped: a program that still sends would see a broken connection, not the answer.
    """
    content, length = bytearray(), 0
    async for chunk in request.stream():
        length += len(chunk)
        if length <= MOST_BYTES:
            content += chunk
        elif length > 2 * MOST_BYTES:
            break
    return None if length > MOST_BYTES else bytes(content)


def _parameters(given: list[tuple[str, str]]) -> dict[str, str]:
    """Return the parameters of a search, of the address and of a form.

    Raises:
        UserError: One is unknown, has another form, or is given twice, or the run is missing.
    """
    known = {"k": "10", "gallery": "all"} | dict(given)
    if unknown := known.keys() - set(PARAMETERS):
        raise UserError(_unknown_words(unknown, PARAMETERS))
    if twice := next((name for name in PARAMETERS if [other for other, _ in given].count(name) > 1), None):
        raise UserError(f"{twice} is given twice. Give it once.")
    if not (known["k"].isascii() and known["k"].isdecimal() and len(known["k"]) < 6):
        raise UserError("k must be a whole number.")
    if not known.get("run"):
        raise UserError("run is missing. GET /api/runs lists the ids.")
    return known


def _unknown_words(unknown: Set[str], parameters: tuple[str, ...]) -> str:
    return f"The parameter {quoted(min(unknown))} is unknown. Known: {', '.join(parameters) or 'none'}."


async def _read_form(request: Request, content: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    """Return the content of the file of a form, and its other fields.

    Raises:
        UserError: It has no file, several files or an empty file, or is damaged.
    """
    async def chunks() -> AsyncGenerator[bytes, None]:
        yield content

    try:
        async with asyncio.timeout(LONGEST_WAIT):
            form = await MultiPartParser(request.headers, chunks(), max_files=MOST_FIELDS,
                                         max_fields=MOST_FIELDS).parse()
    except (MultiPartException, ValueError, KeyError) as error:
        raise UserError(f"The form could not be read. Send one file as {FORM}, with the boundary in Content-Type."
                        ) from error
    try:
        files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
        if len(files) != 1:
            raise UserError(f"The form must have one file, the image, got {len(files) or 'none'}.")
        if not (read := await files[0].read()):
            raise UserError("The file of the form is empty. Send the content of an image file.")
        return read, [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    finally:
        await form.close()


async def _answered(answer: Callable[[], dict[str, Any]]) -> JSONResponse:
    """Return what a function answers in a thread of its own, or its error."""
    def call() -> dict[str, Any]:
        wait_for_step()
        return answer()

    try:
        return JSONResponse(await anyio.to_thread.run_sync(call), headers={"Cache-Control": "no-store"})
    except UserError as error:
        return refused(getattr(error, "status", 400), str(error))


def _needs_login() -> bool:
    """Return whether the pages can ask for a login by OpenID Connect, which the routes would go around."""
    try:
        return "auth" in st.secrets
    except (FileNotFoundError, KeyError):  # there are no secrets
        return False


def refused(status: int, reason: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return the answer to a program that is refused."""
    return JSONResponse({"error": reason}, status, {"Cache-Control": "no-store", **(headers or {})})


PROGRAMS = Programs()
