"""The documented proxy: nginx itself, before a stand-in for the app."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from starlette.datastructures import Headers

from pages.parts.shell.visitors import own_hosts, refusal
from tests.project.documents import ROOT
from udml_core.base.paths import ASSETS

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
MAIN = """daemon off; master_process off; pid {place}/nginx.pid; error_log stderr;
events {{}}
http {{
    access_log off; client_body_temp_path {place}; proxy_temp_path {place};
    fastcgi_temp_path {place}; uwsgi_temp_path {place}; scgi_temp_path {place};
    include {place}/site.conf;
}}
"""
LOGIN = "Basic " + base64.b64encode(b"ada:secret").decode()


class App(BaseHTTPRequestHandler):
    """Answers with the headers of the request."""

    def do_GET(self) -> None:
        content = json.dumps(dict(self.headers)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of nginx with the documented file, without TLS, at a free port."""
    if NGINX is None:
        pytest.skip("needs nginx: `apt install nginx-light`")
    place = tmp_path_factory.mktemp("nginx")
    app = ThreadingHTTPServer(("127.0.0.1", 0), App)
    Thread(target=app.serve_forever, daemon=True).start()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    site = "".join(line for line in (ASSETS / "nginx.conf").read_text(encoding="utf-8").splitlines(keepends=True)
                   if "ssl_certificate" not in line)
    for documented, own in (("443 ssl", f"127.0.0.1:{port}"), ("127.0.0.1:8501", f"127.0.0.1:{app.server_port}"),
                            ("/etc/nginx/udml.passwords", f"{place}/passwords")):
        assert site.count(documented) == 1
        site = site.replace(documented, own)
    (place / "site.conf").write_text(site)
    (place / "passwords").write_text("ada:{PLAIN}secret\n")
    (place / "nginx.conf").write_text(MAIN.format(place=place))
    nginx = subprocess.Popen([NGINX, "-p", str(place), "-c", str(place / "nginx.conf")], stderr=subprocess.PIPE)
    try:
        _wait_until_open(port, nginx)
        yield f"http://127.0.0.1:{port}"
    finally:
        nginx.terminate()
        nginx.wait(30)
        app.shutdown()


def _wait_until_open(port: int, nginx: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if nginx.poll() is not None:
            raise AssertionError(nginx.stderr.read().decode() if nginx.stderr else "nginx ended")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("nginx did not open its port within a minute")


@pytest.mark.parametrize("login", ["", "Basic " + base64.b64encode(b"ada:wrong").decode(), "Bearer secret"])
def test_nobody_passes_without_the_password(login: str, proxy: str) -> None:
    for path in ("/", "/_stcore/stream", "/media/x.jpg"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(proxy + path, headers={"Authorization": login}), timeout=30)
        assert refused.value.code == 401


def test_the_app_receives_host_and_upgrade_and_no_password(proxy: str) -> None:
    asked = {"Authorization": LOGIN, "Upgrade": "websocket", "Connection": "Upgrade"}
    with urllib.request.urlopen(urllib.request.Request(proxy, headers=asked), timeout=30) as answer:
        assert answer.headers["Strict-Transport-Security"]
        received = {name.lower(): value for name, value in json.load(answer).items()}
    assert received["host"] == proxy.removeprefix("http://")
    assert (received["upgrade"], received["x-forwarded-proto"]) == ("websocket", "http")
    assert "authorization" not in received
    assert received["connection"] == "upgrade"


def test_the_app_answers_the_proxys_name_with_the_documented_setting(proxy: str) -> None:
    name = next(line.split()[1].rstrip(";") for line in (ASSETS / "nginx.conf").read_text(encoding="utf-8").splitlines()
                if "server_name" in line)
    assert f"UDML_HOSTS={name} " in (ROOT / "docs" / "sharing.md").read_text(encoding="utf-8")
    asked = {"Authorization": LOGIN, "Host": name, "Origin": f"https://{name}"}
    with urllib.request.urlopen(urllib.request.Request(proxy, headers=asked), timeout=30) as answer:
        received = Headers({key.lower(): value for key, value in json.load(answer).items()})
    assert refusal(received, own_hosts(), frozenset({name})) == ""
    assert refusal(received, own_hosts(), frozenset())
