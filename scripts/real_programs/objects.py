"""Uploads and downloads by boto3, against two servers of S3: moto, in Python, and gofakes3, in Go."""

import hashlib
import io
import sys
import urllib.request
import zlib
from importlib.util import find_spec
from pathlib import Path

from chain import Way
from server import Server, Steps, must

MOTO = """
import threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("port:", server.get_host_and_port()[1], flush=True)
threading.Event().wait()
"""
MB = 1 << 20
KEY = "key"


def pattern(length: int, seed: int) -> bytes:
    """Bytes that do not compress."""
    return hashlib.shake_128(seed.to_bytes(4, "big")).digest(length)


BIG, PARTS = pattern(20 * MB + 7, 1), pattern(25 * MB + 11, 2)
TEXT = b"".join(b"line %d of a text that compresses\n" % number for number in range(8000))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Objects(Server):
    name = "boto3"
    speaks_tls = True
    # What its server knows of the checksums that boto3 adds to bodies.
    checksums = "when_supported"

    @classmethod
    def lacks(cls, packages: Path) -> str:
        return "" if find_spec("boto3") else "boto3 is not to be had"

    def client(self, way: Way):
        import boto3
        from botocore.config import Config

        settings = Config(
            retries={"total_max_attempts": 1},
            connect_timeout=20,
            read_timeout=60,
            s3={"addressing_style": "path"},
            request_checksum_calculation=self.checksums,
            response_checksum_validation=self.checksums,
        )
        return boto3.client(
            "s3", endpoint_url=way.url, aws_access_key_id=KEY, aws_secret_access_key=KEY, region_name="us-east-1",
            verify=str(way.authority) if way.is_tls else None, config=settings,
        )

    def cases(self, way: Way) -> dict[str, str]:
        s3, steps, bucket = self.client(way), Steps(), f"way-{way.port}"
        at = {"Bucket": bucket}
        steps("a bucket is made", lambda: s3.create_bucket(**at))
        steps("a text is put", lambda: s3.put_object(**at, Key="text", Body=TEXT, ContentType="text/plain"))
        steps("20 MB are put, with Expect", lambda: self.put_expecting(s3, bucket))
        steps("25 MB are put in parts, four at once", lambda: self.put_parts(s3, bucket))
        for key, body in (("text", TEXT), ("big", BIG), ("parts", PARTS)):
            steps(f"{key} is the same again", lambda: self.same(s3, bucket, key, body))
        steps("ranges are the same", lambda: self.ranges(s3, bucket))
        steps("a text is the same by gzip", lambda: self.by_gzip(s3, bucket, way))
        steps("304 to an ETag that is the same", lambda: self.not_modified(s3, bucket))
        steps("a head has the length", lambda: must(s3.head_object(**at, Key="big")["ContentLength"] == len(BIG), "length"))
        steps("a list names all", lambda: self.listed(s3, bucket))
        steps("a copy is the same", lambda: self.copied(s3, bucket))
        steps("20 MB for a bucket that is not there: 404", lambda: self.refused(s3, "no-such-bucket", "NoSuchBucket"))
        steps("what comes behind a refusal is served", lambda: self.same(s3, bucket, "text", TEXT))
        steps("what is deleted is gone", lambda: self.deleted(s3, bucket))
        s3.close()
        return steps.cases

    def put_expecting(self, s3, bucket: str) -> None:
        sent = []
        s3.meta.events.register_last("before-send.s3.PutObject", lambda request, **_: sent.append(request.headers.get("Expect")))
        s3.put_object(Bucket=bucket, Key="big", Body=io.BytesIO(BIG))
        must(sent == [b"100-continue"] or sent == ["100-continue"], f"Expect is {sent}")

    def put_parts(self, s3, bucket: str) -> None:
        from boto3.s3.transfer import TransferConfig

        parts = TransferConfig(multipart_threshold=5 * MB, multipart_chunksize=6 * MB, max_concurrency=4)
        sent = []
        s3.meta.events.register_last("before-send.s3.UploadPart", lambda request, **_: sent.append(request.url))
        s3.upload_fileobj(io.BytesIO(PARTS), bucket, "parts", Config=parts)
        must(len(sent) == 5, f"{len(sent)} parts were sent")

    def same(self, s3, bucket: str, key: str, body: bytes) -> None:
        got = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        must(digest(got) == digest(body), f"{len(got)} bytes in place of {len(body)}, or others")

    def ranges(self, s3, bucket: str) -> None:
        length, step, got = len(BIG), 7 * MB, b""
        for start in range(0, length, step):
            answer = s3.get_object(Bucket=bucket, Key="big", Range=f"bytes={start}-{min(start + step, length) - 1}")
            must(answer["ResponseMetadata"]["HTTPStatusCode"] == 206, "not 206")
            got += answer["Body"].read()
        must(digest(got) == digest(BIG), "pieces are others")
        last = s3.get_object(Bucket=bucket, Key="text", Range="bytes=-100")
        must(last["Body"].read() == TEXT[-100:], "the last 100 bytes are others")
        must(last["ContentRange"] == f"bytes {len(TEXT) - 100}-{len(TEXT) - 1}/{len(TEXT)}", last["ContentRange"])

    def by_gzip(self, s3, bucket: str, way: Way) -> None:
        """As a browser asks for it; without terse it comes as it is."""
        import ssl

        url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "text"}, ExpiresIn=600)
        request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
        context = ssl.create_default_context(cafile=str(way.authority)) if way.is_tls else None
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            coding, got = answer.headers.get("Content-Encoding"), answer.read()
        must((coding == "gzip") == way.of_terse, f"Content-Encoding is {coding}")
        got = zlib.decompress(got, wbits=31) if coding == "gzip" else got
        must(digest(got) == digest(TEXT), "another text")

    def not_modified(self, s3, bucket: str) -> None:
        etag = s3.head_object(Bucket=bucket, Key="text")["ETag"]
        must(status(lambda: s3.get_object(Bucket=bucket, Key="text", IfNoneMatch=etag)) == 304, "not 304")

    def listed(self, s3, bucket: str) -> None:
        keys = {one["Key"]: one["Size"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]}
        must(keys == {"text": len(TEXT), "big": len(BIG), "parts": len(PARTS)}, keys)

    def copied(self, s3, bucket: str) -> None:
        s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "text"})
        self.same(s3, bucket, "copy", TEXT)

    def refused(self, s3, bucket: str, code: str) -> None:
        from botocore.exceptions import ClientError

        try:
            s3.put_object(Bucket=bucket, Key="refused", Body=io.BytesIO(BIG))
        except ClientError as error:
            must(error.response["Error"]["Code"] == code, error)
        else:
            raise AssertionError("it was taken")

    def deleted(self, s3, bucket: str) -> None:
        for key in ("text", "big", "parts", "copy"):
            s3.delete_object(Bucket=bucket, Key=key)
        must(status(lambda: s3.head_object(Bucket=bucket, Key="big")) == 404, "it is there")
        s3.delete_bucket(Bucket=bucket)


class Moto(Objects):
    title = "boto3, S3 by moto"
    expected = 16

    @classmethod
    def lacks(cls, packages: Path) -> str:
        return super().lacks(packages) or ("" if find_spec("moto") and find_spec("flask") else "moto is not to be had")

    def start(self) -> None:
        self.launch([sys.executable, "-c", MOTO])


class Gofakes3(Objects):
    """It refuses before it has read a body, and then reads a part of it at most."""

    title = "boto3, S3 by gofakes3"
    expected = 16
    # It is older than checksums in trailers.
    checksums = "when_required"

    @classmethod
    def lacks(cls, packages: Path) -> str:
        has = (packages / "gofakes3").is_file()
        return super().lacks(packages) or ("" if has else "gofakes3, which takes Go, is not to be had")

    def start(self) -> None:
        self.launch([str(self.packages / "gofakes3"), "-host", "127.0.0.1:0", "-backend", "memory"])


def status(ask) -> int:
    from botocore.exceptions import ClientError

    try:
        return ask()["ResponseMetadata"]["HTTPStatusCode"]
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
